"""resources.runtimes.process: how the level is tried, when again, and when not at all."""

import os
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from isolane.protocol import NodeCatalogue
from isolane.sandbox.report import ExitReport
from resources.runtimes.base import RuntimeStartError
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
