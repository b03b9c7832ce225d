"""The caller whose turn a request takes: its tenant if its credential was valid before, else all strangers. Pure."""

from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b

MAX_KNOWN = 10_000
# All unknown callers together, however many addresses they have.
STRANGERS = "strangers"


class Callers:
    """Callers by credential, as the application has reported them; only digests of credentials are kept."""

    def __init__(self, most: int = MAX_KNOWN) -> None:
        self._most = most
        self._known: OrderedDict[bytes, str] = OrderedDict()

    def of(self, credential: bytes) -> str:
        """Return the likely caller of a request; the application decides."""
        return self._known.get(credential, STRANGERS)

    def learn(self, credential: bytes, caller: str) -> None:
        """Remember a valid credential; forget the oldest beyond the limit."""
        if credential:
            self._known[credential] = caller
            self._known.move_to_end(credential)
            if len(self._known) > self._most:
                self._known.popitem(last=False)


def credential_of(headers: Iterable[tuple[bytes, bytes]], session_cookie: bytes) -> bytes:
    """Return a digest of the credential that the request shows; empty if it shows none."""
    authorization = cookie = b""
    for name, value in headers:
        if name == b"authorization":
            authorization = value
        elif name == b"cookie":
            cookie = _value_of(value, session_cookie) or cookie
    # Without the scheme and blanks, or one key in many spellings would take the places of all others.
    shown = authorization.partition(b" ")[2].strip() or authorization or cookie
    return blake2b(shown, digest_size=16).digest() if shown else b""


def _value_of(cookies: bytes, wanted: bytes) -> bytes:
    pairs = (one.partition(b"=") for one in cookies.split(b";"))
    return next((value.strip() for name, _, value in pairs if name.strip() == wanted), b"")
