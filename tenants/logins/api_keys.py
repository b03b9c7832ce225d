"""API keys in requests: wrong ones make their address wait, valid ones pass whatever others at the address do."""

import threading
from collections import OrderedDict

from django.http import HttpRequest

from tenants.caller import Caller
from tenants.logins.attempts import with_key
from tenants.services.api_keys import digest_of, find_caller, invalid_key

MAX_KNOWN = 10_000


class KnownKeys:
    """Digests of keys that were valid lately; those used longest ago are forgotten first."""

    def __init__(self, most: int = MAX_KNOWN) -> None:
        self._most = most
        self._digests: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def has(self, digest: str) -> bool:
        """Whether it was valid when it was last looked up."""
        with self._lock:
            if digest not in self._digests:
                return False
            self._digests.move_to_end(digest)
            return True

    def add(self, digest: str) -> None:
        """Remember a valid one."""
        with self._lock:
            self._digests[digest] = None
            if len(self._digests) > self._most:
                self._digests.popitem(last=False)

    def drop(self, digest: str) -> None:
        """Forget one that is not valid any more."""
        with self._lock:
            self._digests.pop(digest, None)


KNOWN = KnownKeys()


def key_in(authorization: str) -> str | None:
    """The key in an Authorization header, if there is one of that kind."""
    scheme, _, sent = authorization.partition(" ")
    return sent.strip() if scheme.lower() == "bearer" else None


def caller_of_request(request: HttpRequest, key: str) -> Caller:
    """Who calls with this key. The database says so each time; what is known only lets the key through to it."""
    digest = digest_of(key)
    if KNOWN.has(digest) and (caller := find_caller(key)):
        return caller
    KNOWN.drop(digest)
    caller = with_key(request, lambda: find_caller(key))
    if caller is None:
        raise invalid_key()
    KNOWN.add(digest)
    return caller
