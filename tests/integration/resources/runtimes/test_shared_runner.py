"""resources.runtimes.shared_runner: what a runner inherits, and what is left of it."""

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from resources.runtimes import zygote as zygotes
from resources.runtimes.base import RuntimeStartError
from resources.runtimes.interpreter import Program
from resources.runtimes.shared_runner import SharedRunner
from resources.runtimes.watchdog import Watchdog
from resources.runtimes.zygote import Zygote, ZygoteOptions
from tests.integration.resources.runtimes.conftest import Driver, Start, is_gone


def test_it_leads_its_own_session(start: Start) -> None:
    runtime = start()
    Driver(runtime).output("test.identity")  # from then on it has done all that a fork does first
    assert os.getsid(runtime.pid) == os.getpgid(runtime.pid) == runtime.pid


def test_its_folder_goes_with_it(start: Start) -> None:
    runtime = start()
    Driver(runtime).output("test.identity")
    folder = Path(psutil.Process(runtime.pid).cwd())
    assert folder.name.startswith("isolane-")
    Driver(runtime).output("test.leave_traces")
    runtime.kill()
    runtime.kill()
    assert not folder.exists()


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    """One that forks for this test alone."""
    zygote = Zygote(ZygoteOptions())
    yield zygote
    zygote.stop()


def test_a_runner_that_cannot_be_started_is_an_error(
    zygote: Zygote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zygotes, "zygote_program", lambda: Program("/nowhere/python"))
    with pytest.raises(RuntimeStartError, match="/nowhere/python"):
        SharedRunner(zygote=zygote, watchdog=Watchdog())


def test_a_folder_that_cannot_be_emptied_is_said(zygote: Zygote) -> None:
    watchdog = Watchdog()
    child = SharedRunner(zygote=zygote, watchdog=watchdog)
    assert child.wipe()
    child.kill()
    assert not child.wipe()
    assert is_gone(child.pid)
    child.dispose()
    watchdog.stop()
