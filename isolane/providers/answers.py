"""Bounded reading of an HTTP answer's body."""

from collections.abc import Iterator

import httpx

from isolane.providers.failures import EXCERPT_MAX
from isolane.results import Code, StepError


def read_at_most(what: str, response: httpx.Response, limit: int) -> bytes:
    """Return the whole body of an open answer, or fail with OUTPUT_TOO_LARGE."""
    return b"".join(parts(what, response, limit))


def parts(what: str, response: httpx.Response, limit: int) -> Iterator[bytes]:
    """Yield the body of an open answer as it comes, or fail with OUTPUT_TOO_LARGE."""
    declared = response.headers.get("content-length", "")
    if (
        declared.isascii()
        and declared.isdigit()
        and int(declared) > limit
        and response.request.method != "HEAD"
    ):
        raise _too_large(what, f"{declared} bytes are", limit)
    size = 0
    for part in response.iter_bytes():
        size += len(part)
        if size > limit:
            raise _too_large(what, "the answer is", limit)
        yield part


def beginning(response: httpx.Response) -> str:
    """Return the first characters of an open answer's body; more than an excerpt needs."""
    data = b""
    for part in response.iter_bytes():
        data += part
        if len(data) >= 2 * EXCERPT_MAX:
            break
    return text_of(data[: 8 * EXCERPT_MAX], response)


def text_of(data: bytes, response: httpx.Response) -> str:
    """Return bytes of an answer as text, in the encoding that it names, or in UTF-8 if that is unknown."""
    try:
        return data.decode(response.charset_encoding or "utf-8", "replace")
    except (LookupError, ValueError):
        return data.decode("utf-8", "replace")


def _too_large(what: str, found: str, limit: int) -> StepError:
    return StepError(Code.OUTPUT_TOO_LARGE, f"{what}: {found} over the limit of {limit} bytes")
