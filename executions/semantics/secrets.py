"""The forms in which an injected secret may turn up: as it is, escaped, and encoded as libraries do. Pure."""

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

from resources.resolvers.base import MIN_CHARACTERS

# Characters; what is shorter is found everywhere, and is refused when a secret is stored or resolved.
MIN_SECRET = MIN_CHARACTERS
_ESCAPE = re.compile(r"%[0-9A-F]{2}")


def forms(secret: str) -> frozenset[str]:
    """All texts by which the secret is known; none of a secret that is too short."""
    if len(secret) < MIN_SECRET:
        return frozenset()
    quoted = (json.dumps(secret), json.dumps(secret, ensure_ascii=False), repr(secret))
    plain = {secret, *(form[1:-1] for form in quoted), *_lines(secret)}
    return frozenset(plain | set(_url_encoded(secret)) | set(_base64_encoded(secret.encode())))


def _lines(secret: str) -> set[str]:
    """A key of several lines may be said line by line."""
    return {line for line in secret.splitlines() if len(line) >= MIN_SECRET}


def _url_encoded(secret: str) -> Iterable[str]:
    for encoded in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield encoded
        yield _ESCAPE.sub(lambda found: found[0].lower(), encoded)


def _base64_encoded(secret: bytes) -> Iterable[str]:
    """Three forms each, since it depends on what stands before; what depends on neighbours is left out."""
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            encoded = encode(bytes(shift) + secret).decode().rstrip("=")
            begin = (shift * 8 + 5) // 6
            end = (shift + len(secret)) * 8 // 6
            yield encoded[begin:end]
