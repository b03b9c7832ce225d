"""resources.runtimes.child: what a runner inherits, and what is left of it."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from resources.runtimes.base import RuntimeStartError
from resources.runtimes.child import RunnerProcess
from resources.runtimes.watchdog import Watchdog
from resources.runtimes.zygote import Zygote, ZygoteOptions
from tests.integration.resources.runtimes.conftest import Driver, Start, is_gone

SECRETS = (
    "DATABASE_URL",
    "REDIS_URL",
    "SECRET_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "PYTHONSTARTUP",
    "ISOLANE_CACHE_URL",
    "ISOLANE_SECRETS_DIR",
    "ISOLANE_SECRET_ACME__BILLING_PASSWORD",
)


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "hunter2")


@pytest.mark.usefixtures("secrets")
def test_no_credential_of_the_worker_is_inherited(start: Start) -> None:
    runtime = start()
    seen = Driver(runtime).output("test.environment")
    assert "hunter2" not in seen["environ"] + seen["env"]
    assert "hunter2" not in Path(f"/proc/{runtime.pid}/environ").read_text()
    assert set(psutil.Process(runtime.pid).environ()) <= {
        "PATH",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",  # set by Python itself where the locale is C
        "TZ",
        "PYTHONPATH",
        "HOME",
        "TMPDIR",
    }


def test_no_descriptor_of_the_worker_is_inherited(driver: Driver, tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        targets = driver.output("test.descriptors")
    kinds = sorted(target.split(":")[0] for target in targets if "/proc/" not in target)
    # The stream, the pipes for output, and copies of the three standard descriptors.
    assert kinds == ["/dev/null", "pipe", "pipe", "pipe", "pipe", "socket"]


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
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(RuntimeStartError, match="/nowhere/python"):
        RunnerProcess(zygote=zygote, watchdog=Watchdog())


def test_a_folder_that_cannot_be_emptied_is_said(zygote: Zygote) -> None:
    watchdog = Watchdog()
    child = RunnerProcess(zygote=zygote, watchdog=watchdog)
    assert child.wipe()
    child.kill()
    assert not child.wipe()
    assert is_gone(child.pid)
    child.dispose()
    watchdog.stop()
