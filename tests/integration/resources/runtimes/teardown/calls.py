"""The calls that leave the runtimes' own modules, and each of them failing once.

Seen by the interpreter's profile hook, so that a call that is added tomorrow is among them. What is meant are calls
that the system, a library or another process has a part in; operations on values in memory are none.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinFunctionType, FrameType
from typing import Any

import resources.runtimes

INSIDE = str(Path(resources.runtimes.__file__).parent)
# Modules of built-in functions, and types of built-in objects, behind which there is a system.
SYSTEM = ("posix", "fcntl", "select", "_socket", "socket", "_posixsubprocess", "_signal", "_io")
# Python's own means of saying what is done in which order, and of telling it.
MEANS = (
    "contextlib",
    "logging",
    "threading",
    "enum",
    "typing",
    "datetime",
    "dataclasses",
    "collections",
    "tests",
    "hypothesis",
)
# Whatever these say, what they were given is released: so they fail after the fact, as close(2) does.
RELEASING = ("close", "__exit__")

Error = Callable[[], Exception]
ERRORS: tuple[Error, ...] = (
    lambda: OSError(5, "Input/output error"),
    lambda: RecursionError("maximum recursion depth exceeded"),
)


@dataclass(frozen=True)
class Call:
    """A place in our modules, how it is come to, and what is called there."""

    way: str
    line: int
    callee: str

    @property
    def releases(self) -> bool:
        """Return True if it fails after it has had its effect."""
        return self.callee.rpartition(".")[2] in RELEASING


def _seen(frame: FrameType, event: str, arg: Any) -> Call | None:
    is_builtin = event in {"c_call", "c_return"}
    caller = frame if is_builtin else frame.f_back
    if caller is None or not caller.f_code.co_filename.startswith(INSIDE):
        return None
    callee = _builtin(arg) if is_builtin else _python(frame)
    if not callee:
        return None
    return Call(_way(caller), caller.f_lineno, callee)


def _way(frame: FrameType | None) -> str:
    """The functions of ours that lead to a call: what it costs when it fails depends on them."""
    names = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(INSIDE):
            names.append(frame.f_code.co_name)
        frame = frame.f_back
    return " < ".join(names)


def _builtin(function: BuiltinFunctionType) -> str:
    module = function.__module__ or type(function.__self__).__module__
    return f"{module}.{function.__name__}" if module in SYSTEM else ""


def _python(frame: FrameType) -> str:
    module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
    if frame.f_code.co_filename.startswith(INSIDE) or module.split(".")[0] in MEANS:
        return ""
    # What Python calls by itself is no call of ours, such as the hash of a path.
    is_own = name.startswith("__") and name not in {"__init__", "__exit__"}
    # What has no file is made by Python itself, such as the constructor of a named tuple.
    return "" if is_own or frame.f_code.co_filename.startswith("<") else f"{module}.{name}"


@contextmanager
def recorded() -> Iterator[list[Call]]:
    """Every call that is made within, in order, each place once."""
    calls: dict[Call, None] = {}
    found: list[Call] = []

    def note(frame: FrameType, event: str, arg: Any) -> None:
        if event in {"c_call", "call"} and (call := _seen(frame, event, arg)):
            calls[call] = None

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        found += calls


@contextmanager
def failing(wanted: Callable[[Call], bool], error: Error) -> Iterator[list[Call]]:
    """The first call that is wanted fails; returned once it has."""
    struck: list[Call] = []

    def strike(frame: FrameType, event: str, arg: Any) -> None:
        call = _seen(frame, event, arg)
        if call and call.releases == (event in {"c_return", "return"}) and wanted(call):
            sys.setprofile(None)
            struck.append(call)
            raise error()

    sys.setprofile(strike)
    try:
        yield struck
    finally:
        sys.setprofile(None)
