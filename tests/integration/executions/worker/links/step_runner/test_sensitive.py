"""Sensitive values: given to the steps that need them, in no column in plain, masked in every text."""

import base64
import json
from typing import Any

import psycopg
import pytest
import redis

from executions.semantics.reasons import EndReason
from executions.states import ExecutionState
from executions.submission.replay import replay
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from isolane.protocol import Log, Progress
from isolane.results import Code
from resources.placement import Placement
from resources.runtimes.stub import fails
from tenants.scope import TenantRef, tenant_scope
from tests.factories import logs_of, place, run_of, start, step_of
from tests.integration.executions.worker.driving import (
    drive,
    echo,
    in_turn,
    run_link,
    runs_of,
    saying,
    script,
    setting,
)

Server = psycopg.Connection[tuple[Any, ...]]
PASSWORD, TOKEN, KEY = "hunter2-password", "t0ken-of-the-step", "k3y-of-the-run"
SECRETS = (PASSWORD, TOKEN, KEY)
INPUTS = {"properties": {"password": {"type": "string", "sensitive": True}}}
ALL = " ".join(SECRETS)

pytestmark = pytest.mark.usefixtures("neighbour", "broker")


def log(message: str) -> Log:
    return Log(step="", level="info", message=message)


def rows(server: Server) -> dict[str, str]:
    """Everything that is stored, of all tenants and the platform, as text."""
    tables = server.execute(
        "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables "
        "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
    ).fetchall()
    found = {}
    for (table,) in tables:
        lines = server.execute(f"SELECT t::text FROM {table} t").fetchall()
        found[table] = "\n".join(line for (line,) in lines)
    return found


def assert_nowhere(server: Server, broker: "redis.Redis") -> None:
    """None of the secrets is in any column of any table, in plain or just encoded, nor in the broker."""
    stored = rows(server)
    assert "tenant_requires" in stored["acme.executions_execution"]  # it does find
    for secret in SECRETS:
        for form in (
            secret,
            secret.encode().hex(),
            base64.b64encode(secret.encode()).decode()[:16],
        ):
            assert [name for name, text in stored.items() if form in text] == []
            for key in broker.keys("*"):
                assert form.encode() not in (broker.dump(key) or b"")


def steps() -> list[dict[str, Any]]:
    """The first makes a token and a key, the second uses all, the third is told of a failure that names them."""
    everything = {"p": "${inputs.password}", "t": "${steps.s1.token}", "k": "${vars.key}"}
    return [
        {"uses": "flaky", "sensitive": ["token", "key"], "with": {"p": "${inputs.password}"}},
        {"uses": "work", "with": {**everything, "text": "${inputs.password}/${vars.key}"}},
        {
            "uses": "pure",
            "on_failure": "recover",
            "recover": {"uses": "rescue", "with": {"said": "${error.message}"}},
        },
        {"uses": "work", "when": "${vars.key}", "idempotency_key": "${steps.s1.token}"},
    ]


@pytest.fixture
def placement(acme: TenantRef, boot: WorkerBoot) -> Placement:
    """A run that says what it knows in every way there is."""
    made = setting({"token": TOKEN, "n": 1}, key=KEY, open="seen")
    frames: list[Log | Progress] = [
        log(f"made {TOKEN} from {PASSWORD}"),
        Progress(step="", fraction=0.5, message=KEY),
    ]
    script(
        boot,
        flaky=saying(frames, made),
        work=saying([log(f"using {ALL}")], setting({"ok": True})),
        pure=saying([log(ALL)], fails(Code.UNKNOWN_ERROR, f"broke with {ALL}")),
        rescue=echo,
    )
    return start(
        acme,
        boot,
        *steps(),
        given={"password": PASSWORD, "user": "ann"},
        inputs=INPUTS,
        outputs={
            "token": "${steps.s1.token}",
            "all": "${inputs.password} ${vars.key}",
            "n": "${steps.s1.n}",
        },
    )


def test_nothing_of_it_is_stored_in_plain_at_any_moment(
    acme: TenantRef,
    links: LinkRunner,
    placement: Placement,
    superuser: Server,
    broker: "redis.Redis",
) -> None:
    assert_nowhere(superuser, broker)
    for path in ("s1", "s2", "s3", "s4"):
        run_link(links, placement, path)
        assert_nowhere(superuser, broker)
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUCCEEDED


def test_later_steps_get_the_real_values(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, placement: Placement
) -> None:
    drive(acme, links, placement)
    asked = {run.step: run for run in runs_of(boot, placement) if run.uses != "rescue"}
    assert asked["s1"].parameters == {"p": PASSWORD}
    assert asked["s2"].parameters == {
        "p": PASSWORD, "t": TOKEN, "k": KEY, "text": f"{PASSWORD}/{KEY}",
    }  # fmt: skip
    assert asked["s2"].variables == {"key": KEY, "open": "seen"}
    assert asked["s4"].idempotency_key == TOKEN


def test_after_a_loss_they_are_there_again(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, placement: Placement, superuser: Server
) -> None:
    run_link(links, placement, "s1")
    with tenant_scope(acme):
        assert hand_back(placement, PlacementEnd(reason=EndReason.WORKER_STOPPED, lost=True))
    again = place(acme, placement.execution_id, boot)
    run_link(links, again, "s2")
    asked = runs_of(boot, placement)[-1]
    assert (asked.parameters["p"], asked.parameters["t"]) == (PASSWORD, TOKEN)
    assert asked.variables["key"] == KEY
    assert logs_of(acme, placement.execution_id)[-1] == "using *** *** ***"


def test_everywhere_it_is_shown_masked(
    acme: TenantRef, links: LinkRunner, placement: Placement
) -> None:
    run = drive(acme, links, placement)
    assert run.inputs == {"password": "***", "user": "ann"}
    assert run.variables == {"key": "***", "open": "seen"}
    assert run.outputs == {"token": "***", "all": "*** ***", "n": 1}
    assert step_of(acme, run.id, "s1").output == {"token": "***", "n": 1}
    assert step_of(acme, run.id, "s2").inputs == {
        "p": "***", "t": "***", "k": "***", "text": "***/***",
    }  # fmt: skip
    third = step_of(acme, run.id, "s3")
    assert (third.message, third.output) == (
        "broke with *** *** ***",
        {"said": "broke with *** *** ***"},
    )
    assert logs_of(acme, run.id) == [
        "made *** from ***", "using *** *** ***", "*** *** ***", "using *** *** ***",
    ]  # fmt: skip


def test_what_nobody_marked_but_tells_it_is_sealed_too_and_still_there_after_a_loss(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    superuser: Server,
    broker: "redis.Redis",
) -> None:
    leak = {"text": f"with {PASSWORD}", PASSWORD: [KEY]}
    script(
        boot,
        flaky=setting(leak, copy=[PASSWORD], open="seen", **{KEY.replace("-", "_"): 1}),
        work=echo,
    )
    later = {"with": {"t": "${steps.s1.text}", "v": "${vars.copy}"}}
    placement = start(
        acme,
        boot,
        {"uses": "flaky"},
        later,
        {"with": {"t": "${steps.s2.t}"}},
        given={"password": PASSWORD, "key": KEY.replace("-", "_"), "also": KEY},
        inputs={"properties": {name: {"sensitive": True} for name in ("password", "key", "also")}},
        outputs={"t": "${steps.s1.text}", "v": "${vars.copy}"},
    )
    run_link(links, placement, "s1")
    assert_nowhere(superuser, broker)
    with tenant_scope(acme):
        assert hand_back(placement, PlacementEnd(reason=EndReason.WORKER_STOPPED, lost=True))
    again = place(acme, placement.execution_id, boot)
    run = drive(acme, links, again)
    assert run.state == ExecutionState.SUCCEEDED
    assert_nowhere(superuser, broker)
    assert runs_of(boot, placement)[1].parameters == {"t": f"with {PASSWORD}", "v": [PASSWORD]}
    variables = {"copy": [PASSWORD], "open": "seen", KEY.replace("-", "_"): 1}
    assert runs_of(boot, placement)[-1].variables == variables
    assert step_of(acme, run.id, "s1").output == {"text": "with ***", "***": ["***"]}
    assert run.variables == {"copy": ["***"], "open": "seen", "***": 1}
    assert run.outputs == {"t": "with ***", "v": ["***"]}


def test_what_is_sealed_is_no_use_to_another_run(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, placement: Placement, superuser: Server
) -> None:
    drive(acme, links, placement)
    other = start(acme, boot, *steps(), given={"password": "other"}, inputs=INPUTS)
    superuser.execute(
        "UPDATE acme.executions_execution e SET sealed_inputs = o.sealed_inputs "
        "FROM acme.executions_execution o WHERE o.id = %s AND e.id = %s",
        [placement.execution_id, other.execution_id],
    )
    with pytest.raises(Exception, match="another owner"):
        links.begin("s1", other, "s1")
    links.end("s1")


def test_a_replay_is_given_the_real_inputs_and_seals_them_again(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    placement: Placement,
    superuser: Server,
    broker: "redis.Redis",
) -> None:
    drive(acme, links, placement)
    copy = replay(acme, placement.execution_id, requested_by="ann").execution
    again = place(acme, copy.id, boot)
    assert drive(acme, links, again).state == ExecutionState.SUCCEEDED
    assert runs_of(boot, again)[0].parameters == {"p": PASSWORD}
    assert_nowhere(superuser, broker)


def test_a_whole_output_is_hidden_and_a_failed_attempt_before_it_too(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    superuser: Server,
    broker: "redis.Redis",
) -> None:
    made = setting([TOKEN, {"deep": KEY}], variable=PASSWORD)
    script(
        boot,
        flaky=in_turn(fails(Code.TRANSIENT_ERROR, "nothing yet"), saying([log(ALL)], made)),
        work=saying([log(ALL)], echo),
    )
    step = {"uses": "flaky", "sensitive": True, "on_failure": "retry"}
    later = {"sensitive": True, "with": {"t": "${steps.s1[0]}", "d": "${steps.s1[1].deep}"}}
    placement = start(acme, boot, step, later)
    assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED
    assert runs_of(boot, placement)[-1].parameters == {"t": TOKEN, "d": KEY}
    assert json.dumps(step_of(acme, placement.execution_id, "s1").output) == '"***"'
    assert_nowhere(superuser, broker)
