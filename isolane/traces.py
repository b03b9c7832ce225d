"""The trace of an unexpected exception, as far as it tells about the author's code."""

import traceback
from types import TracebackType

from isolane.text import TRACE_MAX, storable_end

_OURS = ("isolane.", "asyncio.")  # who calls a node


def trace_of(error: BaseException) -> str:
    """Return the trace from the author's first frame on, bounded and storable."""
    try:
        lines = traceback.format_exception(type(error), error, _authors(error.__traceback__))
    except Exception:  # noqa: BLE001 - formatting calls what the author wrote
        lines = [f"{type(error).__name__}, whose trace cannot be written\n"]
    return storable_end("".join(lines), TRACE_MAX)


def _authors(trace: TracebackType | None) -> TracebackType | None:
    found = trace
    while found is not None and _is_ours(found):
        found = found.tb_next
    return found or trace  # an error of our own has no other frames


def _is_ours(trace: TracebackType) -> bool:
    name = str(trace.tb_frame.f_globals.get("__name__", ""))
    return name.startswith(_OURS) and not name.startswith("isolane.nodes")
