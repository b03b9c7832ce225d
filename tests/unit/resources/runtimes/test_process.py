"""resources.runtimes.process: when the level is tried again, and when not."""

import errno
from collections.abc import Iterator

import pytest

from isolane.protocol import NodeCatalogue
from isolane.sandbox.report import ExitReport
from resources.runtimes import process
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
