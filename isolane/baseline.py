"""The state of a process before an execution, which is restored before the process is reused."""

import contextvars
import decimal
import functools
import locale
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from isolane.descendants import end_descendants
from isolane.descriptors import Descriptors
from isolane.sockets import Sockets

Undo = Callable[[], object]


class Baseline:
    """The state of the process when this was created; for the main thread only, because of signals."""

    def __init__(self) -> None:
        self._threads = set(threading.enumerate())
        self._sockets = Sockets()
        self._undos = {name: save() for name, save in _SAVED.items()}

    def restore(self) -> tuple[str, ...]:
        """Restore the state; return what cannot be restored: such a process is not used again."""
        left = [f"{name} cannot be restored" for name, undo in self._undos.items() if _fails(undo)]
        threads = set(threading.enumerate()) - self._threads
        left += sorted(f"thread {thread.name} was left running" for thread in threads)
        if end_descendants():
            left.append("a process was left running")
        if number := self._sockets.left():
            left.append(f"{number} socket{'s were' if number > 1 else ' was'} left open")
        return tuple(left)


def _fails(undo: Undo) -> bool:
    try:
        undo()
    except (OSError, ValueError, locale.Error):
        return True
    return False


def end_timers() -> None:
    """Stop the timers that steps left."""
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0)


def _signals() -> Undo:
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())

    def undo() -> None:
        end_timers()  # first: their signals must not reach restored handlers
        for number, handler in handlers.items():
            # None: not set by Python, which cannot restore it either.
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    return undo


def _environment() -> Undo:
    environ = dict(os.environ)

    def undo() -> None:
        for name in os.environ.keys() - environ.keys():
            del os.environ[name]
        os.environ.update(environ)

    return undo


def _descriptors() -> Undo:
    return _standard_descriptors().restore


@functools.cache
def _standard_descriptors() -> Descriptors:
    """Return the copies that all executions of the process share: none of them may change these."""
    return Descriptors()


def _directory() -> Undo:
    directory = Path.cwd()
    return lambda: os.chdir(directory)


def _umask() -> Undo:
    mask = os.umask(0o077)
    os.umask(mask)
    return lambda: os.umask(mask)


def _locale() -> Undo:
    name = locale.setlocale(locale.LC_ALL)
    return lambda: locale.setlocale(locale.LC_ALL, name)


def _interpreter() -> Undo:
    streams = sys.stdin, sys.stdout, sys.stderr
    path, limit = list(sys.path), sys.getrecursionlimit()
    trace, profile = sys.gettrace(), sys.getprofile()
    numbers = _numbers().copy()

    def undo() -> None:
        sys.stdin, sys.stdout, sys.stderr = streams
        sys.path[:] = path
        sys.setrecursionlimit(limit)
        sys.settrace(trace)
        sys.setprofile(profile)
        threading.settrace(None)
        threading.setprofile(None)
        if repr(_numbers()) != repr(numbers):
            decimal.setcontext(numbers.copy())

    return undo


def _numbers() -> decimal.Context:
    """Return the decimal context that steps begin with; in a copied context, or steps would share this object."""
    return contextvars.copy_context().run(decimal.getcontext)


def _messages() -> Undo:
    root = logging.getLogger()
    level, handlers, filters = root.level, list(root.handlers), list(root.filters)
    disabled = root.manager.disable
    warned = list(warnings.filters)

    def undo() -> None:
        root.handlers[:], root.filters[:] = handlers, filters
        if (root.level, root.manager.disable) != (level, disabled):
            root.setLevel(level)
            logging.disable(disabled)
        cast("list[Any]", warnings.filters)[:] = warned

    return undo


_SAVED: dict[str, Callable[[], Undo]] = {
    "the signals": _signals,
    "the standard descriptors": _descriptors,
    "the environment": _environment,
    "the working directory": _directory,
    "the umask": _umask,
    "the locale": _locale,
    "the interpreter": _interpreter,
    "logging": _messages,
}
