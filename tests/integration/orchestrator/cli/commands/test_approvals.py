"""`isolane approvals`: what runs of one tenant ask, beside those of another."""

import json

import pytest
import redis

from executions.models import Approval, Execution
from executions.selectors.executions import parse_id
from executions.services.approvals import logger
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from foundation.errors import Conflict, Forbidden, InvalidInput, NotFound, Unauthenticated
from tenants.roles import Role
from tenants.scope import TenantRef, tenant_scope
from tests.factories import everything_of, place, step_of
from tests.integration.executions.api.questions import STEPS, ask, asking_boot
from tests.integration.executions.worker.driving import drive
from tests.integration.orchestrator.cli.conftest import Isolane
from tests.integration.orchestrator.cli.test_runs import key_of

PROMPT = "Pay [red]12[/red]?\x1b[2J"


@pytest.fixture
def boot(database: None, broker: "redis.Redis") -> WorkerBoot:
    """A worker whose nodes ask."""
    return asking_boot()


@pytest.fixture
def asked(boot: WorkerBoot, acme: TenantRef, globex: TenantRef) -> str:
    """A run of acme that asks what might steer a terminal; one of globex asks, too."""
    ask(globex, boot)
    return ask(acme, boot, steps=[{**STEPS[0], "with": {"prompt": PROMPT}}, STEPS[1]])


def state_of(tenant: TenantRef, run: str) -> str:
    with tenant_scope(tenant):
        return Approval.objects.get(execution_id=parse_id(run), number=1).state


def test_open_questions_are_listed_with_a_key(
    isolane: Isolane, asked: str, boot: WorkerBoot, acme: TenantRef, globex: TenantRef
) -> None:
    listing = ("approvals", "list", "--tenant", "acme", "--api-key", key_of(acme))
    shown = isolane(*listing)
    [row] = [line for line in shown.stdout.splitlines() if "exec_" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")][:6] == [
        asked, "1", "payments", "approve", r"Pay [red]12[/red]?\u001b[2J", "open",
    ]  # fmt: skip
    assert shown.stderr == ""
    other = ask(acme, boot)
    bodies = [json.loads(line) for line in isolane(*listing, "--json").stdout.splitlines()]
    assert [(body["execution"], body["prompt"]) for body in bodies] == [
        (other, "Pay?"),
        (asked, PROMPT),
    ]
    assert isolane(*listing, "--limit", "1", "--json").stdout.count("\n") == 1


def test_they_are_listed_by_state(isolane: Isolane, asked: str, acme: TenantRef) -> None:
    key = ("--tenant", "acme", "--api-key", key_of(acme))
    isolane("approvals", "reject", asked, "1", *key)
    assert asked not in isolane("approvals", "list", *key).stdout
    for state in ("rejected", "all"):
        assert asked in isolane("approvals", "list", "--state", state, *key).stdout
    assert isolane("approvals", "list", "--state", "waiting", *key).exit_code == 2


def test_without_a_key_an_operator_sees_that_something_is_asked_and_not_what(
    isolane: Isolane, asked: str, acme: TenantRef
) -> None:
    for options in ((), ("--json",)):
        shown = isolane("approvals", "list", "--tenant", "acme", *options)
        assert asked in shown.stdout
        assert "Pay" not in shown.output
        assert "--api-key or ISOLANE_API_KEY" in shown.stderr
    with pytest.raises(Forbidden, match="ISOLANE_API_KEY"):
        isolane("approvals", "approve", asked, "1", "--tenant", "acme")
    assert state_of(acme, asked) == "open"


@pytest.mark.parametrize(("command", "approved"), [("approve", True), ("reject", False)])
def test_an_answer_is_the_key_owners(
    isolane: Isolane, asked: str, acme: TenantRef, globex: TenantRef, command: str, approved: bool
) -> None:
    before = everything_of(globex)
    key = ("--tenant", "acme", "--api-key", key_of(acme))
    said = isolane("approvals", command, asked, "1", "--comment", "as agreed", *key)
    assert said.stdout == ("Approved.\n" if approved else "Rejected.\n")
    output = step_of(acme, parse_id(asked), "approve").output
    assert output is not None
    assert output["by"].startswith("key:isl_")
    assert output == {"approved": approved, "by": output["by"], "comment": "as agreed"}
    assert isolane("approvals", command, asked, "1", *key).stdout == said.stdout
    assert everything_of(globex) == before


def test_a_second_answer_is_refused(isolane: Isolane, asked: str, acme: TenantRef) -> None:
    first, second = (("--tenant", "acme", "--api-key", key_of(acme)) for _ in range(2))
    isolane("approvals", "approve", asked, "1", *first)
    for command, key in (("reject", first), ("approve", second)):
        with pytest.raises(Conflict, match="It was approved by key:isl_") as refused:
            isolane("approvals", command, asked, "1", *key)
        assert refused.value.code == "already_answered"
    assert state_of(acme, asked) == "approved"


def test_what_is_not_there_is_named(isolane: Isolane, asked: str, acme: TenantRef) -> None:
    key = ("--tenant", "acme", "--api-key", key_of(acme))
    for number in ("2", str(2**31), str(2**70)):
        with pytest.raises(NotFound, match=f"{asked} has no approval {number}"):
            isolane("approvals", "approve", asked, number, *key)
    with pytest.raises(InvalidInput, match="is not an execution id"):
        isolane("approvals", "approve", "exec_1", "1", *key)
    for number in ("0", "x"):
        assert isolane("approvals", "approve", asked, number, *key).exit_code == 2


@pytest.mark.parametrize("comment", ["x" * 2_001, "a\udcffb"], ids=["long", "no text"])
def test_a_comment_that_cannot_be_kept_is_refused(
    isolane: Isolane, asked: str, acme: TenantRef, comment: str
) -> None:
    with pytest.raises(InvalidInput, match="comment") as refused:
        isolane(
            "approvals", "approve", asked, "1", "--comment", comment, "--tenant", "acme", "--api-key", key_of(acme),
        )  # fmt: skip
    assert refused.value.field == "comment"
    assert state_of(acme, asked) == "open"


def test_a_key_acts_with_its_own_rights(isolane: Isolane, asked: str, acme: TenantRef) -> None:
    viewer = ("--tenant", "acme", "--api-key", key_of(acme, role=Role.VIEWER))
    assert asked in isolane("approvals", "list", *viewer).stdout
    with pytest.raises(Forbidden, match="lacks execution:answer on blueprint 'payments'"):
        isolane("approvals", "approve", asked, "1", *viewer)
    limited = ("--tenant", "acme", "--api-key", key_of(acme, "payroll"))
    assert asked not in isolane("approvals", "list", *limited).output
    with pytest.raises(NotFound, match=f"There is no execution {asked}"):
        isolane("approvals", "approve", asked, "1", *limited)
    assert state_of(acme, asked) == "open"


def test_another_tenants_question_is_not_found_and_the_attempt_is_logged(
    isolane: Isolane,
    asked: str,
    acme: TenantRef,
    globex: TenantRef,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warned: list[dict[str, str]] = []
    monkeypatch.setattr(logger, "warning", lambda _, extra: warned.append(extra))
    before = everything_of(acme)
    key = ("--tenant", "globex", "--api-key", key_of(globex))
    assert asked not in isolane("approvals", "list", "--state", "all", *key).output
    for command in ("approve", "reject"):
        with pytest.raises(NotFound, match=f"There is no execution {asked}"):
            isolane("approvals", command, asked, "1", *key)
    assert [told["execution_id"] for told in warned] == [asked.removeprefix("exec_")] * 2
    with pytest.raises(Unauthenticated, match="not one of tenant 'acme'"):
        isolane("approvals", "approve", asked, "1", "--tenant", "acme", "--api-key", key[-1])
    assert everything_of(acme) == before
    assert state_of(acme, asked) == "open"


def test_a_run_that_is_followed_says_once_that_it_asks_and_goes_on_when_it_is_answered(
    isolane: Isolane,
    boot: WorkerBoot,
    acme: TenantRef,
    globex: TenantRef,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask(acme, boot)  # publishes the blueprint
    links, looks = LinkRunner(boot), iter(range(100))

    def go_on(**_: object) -> None:
        with tenant_scope(acme):
            run = Execution.objects.latest("created_at")
        if run.state == "queued":
            drive(acme, links, place(acme, run.id, boot))

    def look(_seconds: float) -> None:
        if next(looks) == 1:  # asked, and looked at once more
            with tenant_scope(acme):
                run = Execution.objects.latest("created_at").public_id
            isolane(*("approvals", "approve", run, "1", "--tenant", "acme"), "--api-key", key)

    key = key_of(acme)
    monkeypatch.setattr("orchestrator.cli.commands.executions.admit_and_send", go_on)
    monkeypatch.setattr("orchestrator.cli.commands.approvals.admit_and_send", go_on)
    monkeypatch.setattr("orchestrator.cli.commands.executions.time.sleep", look)
    followed = isolane("executions", "submit", "payments", "--tenant", "acme", "--wait")
    assert followed.exit_code == 0
    assert followed.stdout.splitlines()[1:] == ["succeeded"]
    hint = "approve asks a person: isolane approvals list --tenant acme"
    assert followed.stderr.count(hint) == 1
