"""The forms in which an injected secret may appear: as it is, escaped, and encoded by libraries. Pure."""

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

from resources.resolvers.base import MIN_CHARACTERS

# Characters. A shorter text occurs everywhere, so a shorter secret is refused when it is stored or resolved.
MIN_SECRET = MIN_CHARACTERS
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
# Characters left unescaped in URLs: none, Python's, those of JavaScript's encodeURIComponent, and those of a path by
# RFC 3986, or by the URL standard of browsers and httpx.
_PATH = "/!$&'()*+,;=:@~"
_SAFE = ("", "/", "!*'()~", _PATH, _PATH + "[\\]^|")
# The header and footer lines of a key are the same for all keys.
_ARMOUR = re.compile(r"-----(?:BEGIN|END) [A-Z0-9 ]+-----")


def forms(secret: str) -> frozenset[str]:
    """Return all texts that reveal the secret; none for a secret that is too short."""
    if len(secret) < MIN_SECRET:
        return frozenset()
    plain = {secret, repr(secret)[1:-1], *_lines(secret)}
    for once in _escaped(secret):
        plain |= {once, *_escaped(once)}  # JSON inside JSON, too
    return frozenset(plain | set(_url_encoded(secret)) | set(_base64_encoded(secret.encode())))


def _escaped(text: str) -> set[str]:
    """Return the text as JSON writes it between quotes."""
    return {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}


def _lines(secret: str) -> set[str]:
    """Return the lines of a key, since it may be printed line by line."""
    lines = {line for line in secret.splitlines() if len(line) >= MIN_SECRET}
    return {line for line in lines if not _ARMOUR.fullmatch(line.strip())}


def _url_encoded(secret: str) -> Iterable[str]:
    for encoded in {quote_plus(secret), *(quote(secret, safe=safe) for safe in _SAFE)}:
        yield encoded
        yield _ESCAPE.sub(lambda found: found[0].lower(), encoded)


def _base64_encoded(secret: bytes) -> Iterable[str]:
    """Yield three forms each, for the three alignments; characters that depend on neighbours are left out."""
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            encoded = encode(bytes(shift) + secret).decode().rstrip("=")
            begin = (shift * 8 + 5) // 6
            end = (shift + len(secret)) * 8 // 6
            yield encoded[begin:end]
