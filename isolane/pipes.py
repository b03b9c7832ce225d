"""Descriptors 1 and 2 as pipes: output of programs and C code is captured like what Python prints.

Nothing here keeps the process from ending, even if a program keeps a pipe open.

Timing: a daemon thread reads output as it comes; `drain` reads what is in the pipes and never waits for more.
Model: from `install` on; a reader holds the lock until its output is emitted.
Guarantee: `drain` emits all output that was written before it; no open pipe blocks anything.
Failure: a closed pipe is no longer read; code that fills a pipe and holds the GIL blocks until it is killed.
"""

import codecs
import contextlib
import ctypes
import fcntl
import os
import select
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from isolane.c_library import c_library
from isolane.output_lock import OutputLock

Feed = Callable[[str], object]

PIPE_SIZE = 256 * 1024  # bytes; as much as a worker accepts of one attempt
_YIELD_SECONDS = 0.001
_LINE_BUFFERED = 1  # _IOLBF of C


class _Source(NamedTuple):
    decoder: codecs.IncrementalDecoder
    feed: Feed


class Pipes:
    """The pipes of one process; `feeds` are the receivers of text, by descriptor."""

    def __init__(self, guard: OutputLock, feeds: Mapping[int, Feed]) -> None:
        self._guard = guard
        self._feeds = feeds
        self._sources: dict[int, _Source] = {}  # by the end that is read
        self._ready = select.poll()
        self._flush: Callable[[], object] = int  # until installed: nothing
        self._wanted = False

    def install(self) -> None:
        """Replace the descriptors, and read from now on."""
        self._flush = _c_output()
        for number, feed in self._feeds.items():
            end = _pipe_at(number)
            self._sources[end] = _Source(codecs.getincrementaldecoder("utf-8")("replace"), feed)
            self._ready.register(end, select.POLLIN)
        threading.Thread(target=self._read, name="isolane-output", daemon=True).start()

    def drain(self) -> None:
        """Emit what is in the pipes."""
        if self._guard.busy():
            return  # the reader may be waiting for this thread: both would wait for ever
        self._wanted = True
        with self._guard.lock:
            self._wanted = False
            for end, _ in self._ready.poll(0):
                self._take(end)

    def finish(self) -> None:
        """Do the same with output in C buffers, and with an incomplete character."""
        self._flush()
        self.drain()
        with self._guard.lock:
            for decoder, feed in self._sources.values():
                if rest := decoder.decode(b"", final=True):
                    feed(rest)

    def forked(self) -> None:
        """Leave reading to the parent."""
        for end in self._sources:
            with contextlib.suppress(OSError):
                os.close(end)
        self._sources, self._ready = {}, select.poll()

    def _read(self) -> None:
        with contextlib.suppress(ConnectionError):  # the worker is gone, and soon this process
            while self._sources:
                self._wait()
                if self._wanted:
                    # Pipes that are never empty must not keep a step from ending.
                    time.sleep(_YIELD_SECONDS)
                self.drain()

    def _wait(self) -> None:
        poll = select.poll()  # one object must not be used by two threads at once
        for end in tuple(self._sources):
            poll.register(end, select.POLLIN)
        poll.poll()

    def _take(self, end: int) -> None:
        source = self._sources[end]
        try:
            data = os.read(end, PIPE_SIZE)
        except BlockingIOError:
            return  # a step has read its own output
        except OSError:
            data = b""
        if data:
            source.feed(source.decoder.decode(data))
        else:
            self._ready.unregister(end)
            del self._sources[end]


def _pipe_at(number: int) -> int:
    """Put the writing end of a new pipe at this descriptor; return the reading end."""
    end, writing = os.pipe()
    with contextlib.suppress(OSError, AttributeError):  # no such call, or too many pipes already
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    os.set_blocking(end, False)
    os.dup2(writing, number)
    os.close(writing)
    return end


def _c_output() -> Callable[[], object]:
    """Make C's stdout line-buffered; return the function that flushes it."""
    try:
        library = c_library()
        stdout = ctypes.c_void_p.in_dll(library, "stdout")
        library.fflush(stdout)
        library.setvbuf(stdout, None, _LINE_BUFFERED, ctypes.c_size_t(0))
    except (OSError, AttributeError, ValueError):
        return int
    return lambda: library.fflush(stdout)
