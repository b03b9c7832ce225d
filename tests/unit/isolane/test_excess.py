"""isolane.excess: exceptions that come from a limit have its code, others do not."""

import errno
import os
import socket
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from isolane.excess import code_of, failure_within, sentence_of
from isolane.limits import RunLimits
from isolane.results import Code, StepError

LIMITS = RunLimits(ram_mb=64, processes=8, disk_mb=10)


def refuse(*_: Any, **__: Any) -> Any:
    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


def raised(act: Callable[[], Any]) -> BaseException:
    try:
        act()
    except BaseException as error:  # noqa: BLE001 - the one that is wanted
        # The frame of the refusal itself would be the kernel's, which has none.
        if error.__traceback__ and error.__traceback__.tb_next:
            _cut(error)
        return error
    raise AssertionError("nothing was raised")


def _cut(error: BaseException) -> None:
    last = error.__traceback__
    while last and last.tb_next and last.tb_next.tb_frame.f_code is not refuse.__code__:
        last = last.tb_next
    if last:
        last.tb_next = None


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), Code.RAM_EXCEEDED),
        (OSError(errno.ENOMEM, ""), Code.RAM_EXCEEDED),
        (OSError(errno.ENOSPC, ""), Code.DISK_FULL),
        (OSError(errno.EDQUOT, ""), Code.DISK_FULL),
        (RuntimeError("can't start new thread"), Code.PROCESS_LIMIT),
        (RuntimeError("can't go on"), None),
        (RuntimeError(), None),
        (OSError(errno.ENOENT, ""), None),
        (BlockingIOError(errno.EAGAIN, ""), None),
        (StepError(Code.TRANSIENT_ERROR, "no space"), None),
        (ValueError(), None),
    ],
)
def test_an_error_of_a_limit_has_its_code(error: BaseException, code: Code | None) -> None:
    assert code_of(error) is code


def test_a_refused_fork_is_a_process_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fork", refuse)
    assert code_of(raised(lambda: os.fork())) is Code.PROCESS_LIMIT  # noqa: PLW0108, TID251 - named in the frame


def test_a_refused_program_is_a_process_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "_fork_exec", refuse)
    assert code_of(raised(lambda: subprocess.run(["true"], check=True))) is Code.PROCESS_LIMIT


def test_an_empty_socket_is_none() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        assert code_of(raised(lambda: ours.recv(1))) is None


def test_the_failure_names_the_limit_and_where_it_is_set() -> None:
    error = OSError(errno.ENOSPC, "secret path")
    result = failure_within(LIMITS, error, step="s", attempt=1, node="n.n")
    assert (result.code, result.cause, result.attempt) == (Code.DISK_FULL, "OSError", 1)
    assert result.message == f"OSError (ENOSPC) in node n.n: {sentence_of(Code.DISK_FULL, LIMITS)}"
    assert "10 MB (disk_mb, limits of the blueprint and of the tenant's quota)" in result.message
    assert "secret" not in result.message
    assert "secret" in result.trace


@pytest.mark.parametrize(
    "error", [MemoryError(), ValueError(), RuntimeError("can't start new thread")]
)
def test_without_such_a_limit_it_is_an_ordinary_failure(error: BaseException) -> None:
    result = failure_within(RunLimits(disk_mb=1), error, step="s", attempt=0, node="n.n")
    assert result.code is Code.UNKNOWN_ERROR


def test_what_filled_the_memory_is_freed_before_the_failure_is_built() -> None:
    class Large:
        freed = False

        def __del__(self) -> None:
            Large.freed = True

    def fill() -> None:
        kept = Large()
        raise MemoryError(id(kept))

    error = raised(fill)
    assert not Large.freed
    failure_within(LIMITS, error, step="s", attempt=0, node="n.n")
    assert Large.freed
