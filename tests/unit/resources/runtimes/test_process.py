"""resources.runtimes.process: how the level is tried, when again, and when not at all."""

import errno
import os
from collections.abc import Iterator
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest

from isolane.limits import RunLimits
from isolane.protocol import NodeCatalogue
from isolane.sandbox.report import ExitReport
from resources.runtimes import process
from resources.runtimes.base import RuntimeStartError
from resources.runtimes.interpreter import Program
from resources.runtimes.process import ProcessBackend
from resources.runtimes.zygote import SandboxRefused

DESCRIBED = NodeCatalogue(nodes=(), packages={}, python="3")


def tried(
    monkeypatch: pytest.MonkeyPatch, *outcomes: NodeCatalogue | RuntimeStartError
) -> tuple[bool, str, int]:
    """Return whether the level is available, why not, and how many outcomes were not needed."""
    left: Iterator[NodeCatalogue | RuntimeStartError] = iter(outcomes)

    def describe(_: ProcessBackend) -> NodeCatalogue:
        outcome = next(left)
        if isinstance(outcome, RuntimeStartError):
            raise outcome
        return outcome

    monkeypatch.setattr(ProcessBackend, "describe", describe)
    backend = ProcessBackend(level="process", size=1)
    found = backend.availability()
    backend.stop()
    return found.ok, found.reason, len(list(left))


def test_a_zygote_that_died_is_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = RuntimeStartError("the zygote does not answer")
    assert tried(monkeypatch, gone, DESCRIBED) == (True, "", 0)
    assert tried(monkeypatch, gone, gone, DESCRIBED) == (False, "the zygote does not answer", 1)


def test_what_the_kernel_refuses_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = SandboxRefused(
        ExitReport(step="proc", errno=1, reason="mounting proc: Operation not permitted")
    )
    ok, reason, left = tried(monkeypatch, refused, DESCRIBED)
    assert (ok, left) == (False, 1)
    assert "procMount: Unmasked" in reason


def test_an_old_kernel_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its set-up may well succeed, with a limit of processes that does not hold."""
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release="5.10.0-28-amd64"))
    ok, reason, left = tried(monkeypatch, DESCRIBED)
    assert (ok, left) == (False, 1)
    assert reason.startswith("the kernel '5.10.0-28-amd64' is too old: Linux 5.14")


class Recorded:
    """A sandbox that remembers its limits, and is never built."""

    limits: RunLimits

    def __init__(self, *, limits: RunLimits, **_: Any) -> None:
        type(self).limits = limits

    def ask(self, *_: object) -> NodeCatalogue:
        """Answer at once."""
        return DESCRIBED

    def dispose(self) -> bool:
        """Have nothing to end."""
        return True


def test_it_is_tried_with_every_limit_that_a_run_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the sized file system and the rlimits would be set for the first time in a run."""
    monkeypatch.setattr(process, "SandboxRunner", Recorded)
    usual, given = (
        ProcessBackend(level="process", size=1),
        ProcessBackend(level="process", size=1, limits=RunLimits(ram_mb=64)),
    )
    assert usual.availability().ok
    unset = [f.name for f in fields(RunLimits) if getattr(Recorded.limits, f.name) is None]
    assert unset == []
    assert given.availability().ok
    assert Recorded.limits.ram_mb == 64
    for backend in (usual, given):
        backend.stop()


def test_a_program_that_steps_could_change_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        process, "zygote_program", lambda: Program("/home/ada/python", is_safe=False)
    )
    ok, reason, left = tried(monkeypatch, DESCRIBED)
    assert (ok, left) == (False, 1)
    assert "a Python that belongs to root" in reason


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM])
def test_what_may_pass_is_tried_again_for_a_while(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(process, "_PAUSES", (0.0, 0.0))
    full = SandboxRefused(ExitReport(step="namespaces", errno=number, reason="making them"))
    assert tried(monkeypatch, full, full, DESCRIBED) == (True, "", 0)
    ok, reason, left = tried(monkeypatch, full, full, full, DESCRIBED)
    assert (ok, left) == (False, 1)
    assert "no more processes or memory" in reason
