"""API keys in requests: wrong ones make their address wait, valid ones pass whatever others at the address do."""

import threading
from collections import OrderedDict

from django.http import HttpRequest

from tenants.caller import Caller
from tenants.logins.attempts import with_key
from tenants.services.api_keys import digest_of, find_caller, invalid_key

MAX_KNOWN = 10_000


class KnownKeys:
    """Digests of keys that were valid lately; the least recently used are forgotten first."""

    def __init__(self, most: int = MAX_KNOWN) -> None:
        self._most = most
        self._digests: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def has(self, digest: str) -> bool:
        """Return True if the key was valid when it was last looked up."""
        with self._lock:
            if digest not in self._digests:
                return False
            self._digests.move_to_end(digest)
            return True

    def add(self, digest: str) -> None:
        """Remember a valid key."""
        with self._lock:
            self._digests[digest] = None
            if len(self._digests) > self._most:
                self._digests.popitem(last=False)

    def drop(self, digest: str) -> None:
        """Forget a key that is no longer valid."""
        with self._lock:
            self._digests.pop(digest, None)


KNOWN = KnownKeys()


def key_in(authorization: str) -> str | None:
    """Return the key in an Authorization header, if it holds one."""
    scheme, _, sent = authorization.partition(" ")
    return sent.strip() if scheme.lower() == "bearer" else None


def caller_of_request(request: HttpRequest, key: str) -> Caller:
    """Return the caller with this key. The database decides each time; a known key only skips the limit."""
    digest = digest_of(key)
    if KNOWN.has(digest) and (caller := find_caller(key)):
        return caller
    KNOWN.drop(digest)
    caller = with_key(request, lambda: find_caller(key))
    if caller is None:
        raise invalid_key()
    KNOWN.add(digest)
    return caller
