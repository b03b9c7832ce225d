"""The node that sends requests to an HTTP service."""

import json as json_text
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

from isolane.context import NodeContext
from isolane.node import node
from isolane.numbers import finite, refuse_constant
from isolane.protocol import MAX_OUTPUT
from isolane.providers.headers import fault_in, is_value
from isolane.results import Code, StepError
from isolane.shapes import Limits, Uses

if TYPE_CHECKING:
    import httpx

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# The headers of an answer that later steps may need; the others would only fill the run's outputs.
_KEPT = (
    "content-type", "etag", "last-modified", "link", "location", "retry-after", "x-request-id",
)  # fmt: skip
_HEADER_MAX = 1_000  # characters

Method = Literal["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]


@node("http.request", uses_key=True)
def http_request(
    ctx: NodeContext,
    *,
    resource: Annotated[str, Uses("http_api")],
    path: Annotated[str, Limits(max_length=8_000)],
    method: Method = "GET",
    query: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    json: Any = None,
    body: str | None = None,
    expect: list[int] | None = None,
) -> dict[str, Any]:
    """Send a request to an HTTP service and return its answer."""
    _refuse_path(path, query)
    if json is not None and body is not None:
        raise _refused("give json or body, not both")
    if fault := fault_in(headers or {}):
        raise _refused(f"headers: {fault}")
    lines = dict(headers or {})
    if method not in _SAFE:
        lines["Idempotency-Key"] = _as_value(ctx.idempotency_key)
    options = {"params": _parameters(query), "headers": lines, "json": json, "content": body}
    given = {name: value for name, value in options.items() if value is not None}
    # Shown to people; a query may contain what they should not see.
    what = f"{method} {path.partition('?')[0][:200]}"
    return _exchange(ctx.resource(resource), what, (method, path), given, expect or [])


def _exchange(
    client: "httpx.Client",
    what: str,
    target: tuple[str, str],
    options: Mapping[str, Any],
    expect: list[int],
) -> dict[str, Any]:
    import httpx  # noqa: PLC0415 - a runner starts without it

    from isolane.providers.answers import beginning, read_at_most, text_of  # noqa: PLC0415
    from isolane.providers.failures import of_error, of_status  # noqa: PLC0415 - likewise

    try:
        with client.stream(*target, **options) as response:
            expected = response.status_code in expect if expect else response.is_success
            if not expected:
                raise of_status(what, response, beginning(response))
            data = read_at_most(what, response, MAX_OUTPUT)
    except httpx.HTTPError as error:
        raise of_error(what, error) from error
    kept = {n: response.headers[n][:_HEADER_MAX] for n in _KEPT if n in response.headers}
    answer = {"status": response.status_code, "headers": kept}
    if _says_json(response.headers.get("content-type", "")):
        try:
            return answer | {
                "json": json_text.loads(data, parse_constant=refuse_constant, parse_float=finite)
            }
        except (ValueError, RecursionError):
            pass  # it is not JSON, whatever its type says
    return answer | {"text": text_of(data, response).replace("\x00", "\ufffd")}


def _says_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _refuse_path(path: str, query: dict[str, Any] | None) -> None:
    plain, has_query, _ = path.partition("?")
    if path and (not path.startswith("/") or path.startswith("//")):
        reason = "does not begin with one slash; it is a path below the resource's base_url"
        raise _refused(f"path {path[:200]!r} {reason}")
    if not path.isprintable() or "\\" in path or "#" in path:
        raise _refused(f"path {path[:200]!r} has a control character, a backslash or a fragment")
    if ".." in plain.lower().replace("%2e", ".").replace("%2f", "/").split("/"):
        raise _refused(f"path {path[:200]!r} leads upwards; a path stays below base_url")
    if has_query and query:
        raise _refused("the path has a query; give query, or a path with one, not both")


def _parameters(query: dict[str, Any] | None) -> dict[str, Any] | None:
    for name, value in (query or {}).items():
        values = value if isinstance(value, list) else [value]
        if any(isinstance(one, dict | list) for one in values):
            raise _refused(f"query.{name}: is not a text, number, boolean or list of these")
    return query or None


def _as_value(key: str) -> str:
    """Return the key in a form that a header can carry; different keys stay different."""
    return key if is_value(key) and "%" not in key else quote(key, safe=":/@+,;=-_.~")


def _refused(reason: str) -> StepError:
    return StepError(Code.POLICY_VIOLATION, f"http.request: {reason}")
