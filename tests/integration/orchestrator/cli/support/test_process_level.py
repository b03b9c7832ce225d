"""The one line that says why the workers do not offer the level process."""

import pytest

from executions.placement.models import Worker
from executions.worker.boot import WorkerBoot
from orchestrator.cli.support.process_level import report_process_level
from resources.runtimes.base import Availability
from resources.runtimes.process import ProcessBackend
from tenants.scope import TenantRef, platform_scope
from tests.factories import make_boot

Captured = pytest.CaptureFixture[str]


def offer_process(boot: WorkerBoot) -> None:
    with platform_scope():
        Worker.objects.filter(boot=boot.id).update(isolation_levels=["shared", "process"])


@pytest.mark.usefixtures("acme", "globex")
def test_nothing_is_said_where_one_of_the_workers_offers_it(capsys: Captured) -> None:
    make_boot()
    offer_process(make_boot(name="w2@test"))
    assert report_process_level(["w1@test", "w2@test"], "Otherwise.")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (Availability(ok=False, reason="no [bold] namespaces (allow them)"), "(allow them)"),
        (Availability(ok=True), "the workers' logs say why (LEVEL_UNAVAILABLE)"),
    ],
)
def test_one_line_says_the_reason_the_consequence_and_a_way_out(
    acme: TenantRef,
    globex: TenantRef,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    found: Availability,
    reason: str,
) -> None:
    make_boot()
    offer_process(make_boot(name="another@machine"))
    monkeypatch.setattr(ProcessBackend, "availability", lambda _: found)
    assert not report_process_level(["w1@test"], f"Otherwise{'.' * 400}")
    printed = capsys.readouterr().out
    assert printed.startswith(f"Level process is not available: {found.reason}")
    assert f"{reason}. Otherwise..." in printed
    assert printed.endswith(". 'isolane levels' tells more.\n")
    assert printed.count("\n") == 1
