"""The check that a process still runs, also if it ends meanwhile."""

import psutil
import pytest

from foundation.process_states import ENDED
from orchestrator.embedded.child import runs


def test_a_process_that_runs() -> None:
    assert runs(psutil.Process())


@pytest.mark.parametrize("status", [*ENDED, psutil.NoSuchProcess(1)])
def test_a_process_that_ends_between_two_questions(
    monkeypatch: pytest.MonkeyPatch, status: str | psutil.NoSuchProcess
) -> None:
    def answer(_: psutil.Process) -> str:
        if isinstance(status, psutil.NoSuchProcess):
            raise status
        return status

    monkeypatch.setattr(psutil.Process, "status", answer)
    assert not runs(psutil.Process())
