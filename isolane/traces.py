"""The origin of an unexpected exception in the author's code."""

import sys
import traceback
from pathlib import PurePath
from types import TracebackType

from isolane.text import TRACE_MAX, storable_end

_OURS = ("isolane.", "asyncio.")  # the callers of a node
_PLACE_MAX = 120  # characters of a path


def trace_of(error: BaseException) -> str:
    """Return the trace from the author's first frame on, bounded and storable."""
    try:
        lines = traceback.format_exception(type(error), error, _authors(error.__traceback__))
    except Exception:  # noqa: BLE001 - formatting calls code of the author
        lines = [f"{type(error).__name__}, whose trace cannot be written\n"]
    return storable_end("".join(lines), TRACE_MAX)


def place_of(error: BaseException) -> str:
    """Return the author's last line before an import failed, as in `…/shop/__init__.py:3: `; else nothing."""
    if isinstance(error, SyntaxError) and error.filename:
        return _place(error.filename, error.lineno or 1)
    found, frame = "", error.__traceback__
    while frame is not None:
        root = str(frame.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if root == "isolane" and found:
            break  # the frames below were called by isolane, for that line
        if root != "isolane" and root not in sys.stdlib_module_names:
            found = _place(frame.tb_frame.f_code.co_filename, frame.tb_lineno)
        frame = frame.tb_next
    return found


def _place(filename: str, line: int) -> str:
    path = "/".join(PurePath(filename).parts[-2:])
    return f"…/{path[-_PLACE_MAX:]}:{line}: "


def _authors(trace: TracebackType | None) -> TracebackType | None:
    found = trace
    while found is not None and _is_ours(found):
        found = found.tb_next
    return found or trace  # an error of isolane itself has no other frames


def _is_ours(trace: TracebackType) -> bool:
    name = str(trace.tb_frame.f_globals.get("__name__", ""))
    return name.startswith(_OURS) and not name.startswith("isolane.nodes")
