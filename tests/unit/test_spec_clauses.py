"""Single clauses of the specs that belong to no one module's tests: contracts with numbers, and sole authorities."""

import ast
import asyncio
import random
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings

from executions.blueprints.plan import plan
from executions.semantics.active_run import ActiveRun
from executions.semantics.attempt import Attempt
from executions.semantics.budgets import Budget
from executions.semantics.memory import ExecutionMemory, Metadata
from executions.semantics.seeds import backoff_ms, derive_seed
from executions.worker.links.context import OpenContext
from executions.worker.links.contexts import Contexts
from isolane.node import Node
from isolane.protocol import Open, Run, dump
from isolane.results import StepResult
from isolane.runner_context import RunnerContext
from resources.runtimes.base import OnFrame
from tests.placements import a_placement
from tests.product_statements import all_statements
from tests.unit.executions.local.trial import Trial
from tests.unit.semantic_header import Module
from tests.unit.test_semantic_headers import example, modules

ROOT = Path(__file__).parent.parent.parent


# --- the contracts that spec 004 gives in numbers
def chance(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
    """A node whose output is its parameters and a number drawn from its seed."""
    output = {"given": run.parameters, "drawn": random.Random(run.seed).random()}
    return StepResult.succeeded(step=run.step, attempt=run.attempt, output=output)


def replayed(seed: int) -> tuple[list[int], Any]:
    """Return the seeds of a fresh run's steps, and the run's outputs."""
    steps: list[dict[str, Any]] = [
        {"uses": "chance", "with": {"task": "${inputs.task}"}},
        {"uses": "chance"},
    ]
    outputs = {"first": "${steps.s0}", "second": "${steps.s1}"}
    given = {"task": "Build landing page"}
    trial = Trial({"chance": chance}, *steps, given=given, outputs=outputs)
    run = trial.run(seed)
    return [asked.seed for _, asked in trial.backend.runs], run.outputs


def test_the_replay_contract() -> None:
    seeds, outputs = replayed(12345)
    assert seeds == [derive_seed(12345, 0), derive_seed(12345, 1)]
    assert replayed(12345) == (seeds, outputs)
    other_seeds, other_outputs = replayed(12346)
    assert not set(other_seeds) & set(seeds)
    assert other_outputs != outputs


def test_the_retry_contract() -> None:
    backoff = backoff_ms(1000, seed=12345, attempt=2)
    assert 1000 * 2**2 <= backoff < 1000 * 2**2 + 1000
    assert backoff == backoff_ms(1000, seed=12345, attempt=2)
    jitters = {
        backoff_ms(base, seed=seed, attempt=attempt) - base * 2**attempt
        for base, seed, attempt in ((1000, 12345, 2), (1000, 54321, 2), (1000, 12345, 3), (999, 12345, 2))
    }  # fmt: skip
    assert len(jitters) == 4


# --- memories on one worker
def open_context(number: int, *, tenant: int, blueprint: str) -> OpenContext:
    """The context of a run with two steps; the second gets the output of the first."""
    first = {"key": "one", "uses": "work"}
    second = {
        "key": "two",
        "uses": "work",
        "with": {"out": "${steps.one}", "v": "${vars.v}", "i": "${inputs.i}"},
    }
    flow = plan({"name": blueprint, "steps": [first, second]})
    metadata = Metadata(
        tenant_id=tenant, execution_id=UUID(int=number), blueprint=blueprint, blueprint_version=1
    )
    memory = ExecutionMemory(
        flow, metadata=metadata, inputs={"i": number}, outputs={}, variables={}
    )
    run = ActiveRun(
        plan=flow, memory=memory, budget=Budget(), seed=1, isolation="shared", seal=dump
    )
    return OpenContext(placement=a_placement(str(number), tenant_id=tenant), run=run)


@pytest.mark.parametrize(
    ("tenants", "blueprints"),
    [
        pytest.param((1, 1), ("flow", "flow"), id="two runs of one blueprint"),
        pytest.param((1, 1), ("flow", "other"), id="two blueprints of one tenant"),
        pytest.param((1, 2), ("flow", "flow"), id="two tenants"),
    ],
)
def test_runs_at_the_same_time_read_their_own_memory_only(
    tenants: tuple[int, int], blueprints: tuple[str, str]
) -> None:
    contexts = Contexts()
    made = [
        open_context(number, tenant=tenant, blueprint=blueprint)
        for number, (tenant, blueprint) in enumerate(zip(tenants, blueprints, strict=True), start=1)
    ]
    for step in ("one", "two"):  # in turn, as links of two runs reach the threads of a worker
        for number, context in enumerate(made, start=1):
            joined = contexts.join(context.placement, lambda new=context: new)  # type: ignore[misc]  # bound
            assert joined is context
            asked = Attempt(joined.run, step, number=1).prepare()
            assert isinstance(asked, Run)
            if step == "two":
                assert asked.parameters == {"out": [number], "v": number, "i": number}
                assert asked.variables == {"v": number}
            done = StepResult.succeeded(
                step=step, attempt=1, output=[number], variables={"v": number}
            )
            Attempt(joined.run, step, number=1).finish(done)
            contexts.leave(joined)
    first, second = contexts.all()
    assert first.run.memory is not second.run.memory


def test_all_links_of_a_placement_are_given_the_memory_of_the_first() -> None:
    contexts = Contexts()
    first = open_context(1, tenant=1, blueprint="flow")
    contexts.join(first.placement, lambda: first)
    again = contexts.join(first.placement, lambda: open_context(1, tenant=1, blueprint="flow"))
    assert again is first


def test_the_tenant_of_a_memory_is_fixed_at_its_creation() -> None:
    memory = open_context(1, tenant=1, blueprint="flow").run.memory
    with pytest.raises(FrozenInstanceError):
        memory.metadata.tenant_id = 2  # type: ignore[misc]  # the very thing
    assert memory.metadata.tenant_id == 1


# --- sync over async
def test_the_event_loop_of_an_execution_is_its_own_and_is_closed_with_it() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def note(_: object) -> None:
        loops.append(asyncio.get_running_loop())

    node = Node(name="test.note", function=note, hints={}, required=frozenset(), defaults={})
    run = Run(
        step="one", uses="test.note", parameters={}, variables={}, attempt=1, seed=1,
        timeout_s=5.0, idempotency_key="k",
    )  # fmt: skip
    for name in ("e1", "e2"):
        execution = RunnerContext(
            Open(execution_id=name, tenant_id="acme", user_id="", request_id="", epoch=1)
        )
        for _ in range(2):
            execution.attempt(node, run, lambda _: None)
        assert not loops[-1].is_closed()
        assert execution.close() == ()
    first, second = loops[::2]
    assert (loops[1], loops[3]) == (first, second)
    assert first is not second
    assert first.is_closed()
    assert second.is_closed()


STARTS_LOOP = {
    "asyncio.run", "asyncio.Runner", "asyncio.new_event_loop", "run_until_complete",
    "async_to_sync",
}  # fmt: skip


def test_only_the_runner_and_the_gate_wrap_async_code_in_a_sync_call() -> None:
    assert {name for name, one in modules().items() if STARTS_LOOP & one.calls} == {
        "isolane.runner_context",
        "isolane.gate.forwarder",  # a process of its own
        "resources.gate.loop",  # a thread of its own, at the edge of a worker
    }
    assert STARTS_LOOP & example("import asyncio\nasyncio.run(work())").calls
    assert STARTS_LOOP & example("from asgiref.sync import async_to_sync\nasync_to_sync(f)()").calls


# --- sole authorities
def under(*places: str) -> dict[str, Module]:
    """Return the modules at these places and below."""
    return {
        name: one
        for name, one in modules().items()
        if any(name == place or name.startswith(f"{place}.") for place in places)
    }


def imported(one: Module, *places: str) -> list[str]:
    """Return the modules at these places that a module imports."""
    return sorted(
        name
        for name in one.imports
        if any(name == place or name.startswith(f"{place}.") for place in places)
    )


API = ("executions.api", "resources.api", "tenants.api", "tenants.middleware")
SERVICES = ("executions.services", "resources.services", "tenants.services")
WORKER = (
    "executions.worker", "executions.placement.chain", "executions.placement.dispatch",
)  # fmt: skip
PLATFORM = (
    "isolane", "foundation", "executions.models", "executions.placement.models", "executions.submission.idempotency",
    "executions.models.sealing", "tenants.models", "tenants.scope", "tenants.postgresql", "resources.runtimes",
)  # fmt: skip
WRITTEN = re.compile(r"\b(?:UPDATE|INSERT INTO|DELETE FROM)\s+(executions_\w+)")
TICKET_WRITTEN = re.compile(r"\b(?:UPDATE|INSERT INTO)\s+(?:public\.)?(placement_ticket)")
RECORDS = {
    "Execution", "Step", "ExecutionEvent", "StepLog", "CostRecord", "MonthlyCost", "ResourceRecord",
}  # fmt: skip
WRITES = {"save", "update", "create", "bulk_create", "bulk_update", "delete", "get_or_create"}


def test_only_the_composition_root_imports_the_api() -> None:
    """Neither the domain nor the worker nor the platform does."""
    users = {
        name
        for name, one in modules().items()
        if imported(one, "executions.api", "resources.api", "tenants.api")
        and name not in under(*API)
    }
    assert {name.partition(".")[0] for name in users} <= {"orchestrator"}


def test_the_platform_layer_imports_no_layer_above_it() -> None:
    assert len(under(*PLATFORM)) > 40
    found = {
        name: above
        for name, one in under(*PLATFORM).items()
        if (above := imported(one, *API, *SERVICES, *WORKER, "executions.transitions"))
    }
    assert found == {}


def records_written(one: Module) -> Iterator[str]:
    """Return the tables and models of runs that a module writes."""
    for part in ast.walk(one.tree):
        match part:
            case ast.Constant(value=str(text)):
                yield from WRITTEN.findall(text)
            case ast.Call(func=ast.Attribute(value=of, attr=attr)) if attr in WRITES:
                yield from RECORDS & {
                    name.id for name in ast.walk(of) if isinstance(name, ast.Name)
                }


def test_only_transitions_write_runs_steps_events_logs_and_costs() -> None:
    writers = {
        name: set(found)
        for name, one in modules().items()
        if (found := list(records_written(one))) and not name.startswith("executions.migrations")
    }
    assert [name for name in writers if not name.startswith("executions.transitions.")] == []
    assert set().union(*writers.values()) >= {
        "executions_execution", "executions_step", "executions_executionevent", "executions_steplog",
        "executions_costrecord", "executions_resourcerecord",
    }  # fmt: skip
    for code in (
        "Execution.objects.filter(pk=1).update(state='x')",
        "Q = 'UPDATE executions_step s SET'",
    ):
        assert list(records_written(example(code))) != []


def ticket_states_written(one: Module) -> Iterator[str]:
    """The places at which a module makes a ticket or sets its state."""
    for part in ast.walk(one.tree):
        match part:
            case ast.Constant(value=str(text)):
                yield from TICKET_WRITTEN.findall(text)
            case ast.Call(func=ast.Attribute(value=of, attr=attr), keywords=given) if (
                attr in WRITES
            ):
                named = {name.id for name in ast.walk(of) if isinstance(name, ast.Name)}
                if named & {"Ticket", "tickets"} and "state" in {each.arg for each in given}:
                    yield attr


def test_only_transitions_write_the_states_of_tickets() -> None:
    """Deleting one is no state: a tenant that is deleted takes its own along."""
    writers = {name for name, one in modules().items() if list(ticket_states_written(one))}
    assert [name for name in writers if not name.startswith("executions.transitions.")] == []
    assert {
        f"executions.transitions.{name}" for name in ("submit", "place", "hand_back")
    } <= writers
    for code in (
        "Ticket.objects.filter(pk=1).update(state='placed')",
        "Q = 'UPDATE public.placement_ticket t SET'",
    ):
        assert list(ticket_states_written(example(code))) != []


def ids_set(one: Module) -> list[str]:
    """Return the statements of a module that give a run another id."""
    return ids_set_by(
        part.value
        for part in ast.walk(one.tree)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )


def ids_set_by(texts: Iterable[str]) -> list[str]:
    """Those of these texts that give a run another id."""
    return [
        text
        for text in texts
        for clause in _set_clauses(text)
        if re.search(r"(?:^|,)\s*id\s*=", clause)
    ]


def _set_clauses(text: str) -> list[str]:
    return re.findall(
        r"UPDATE\s+executions_execution\b.*?\bSET\b(.*?)(?:\bFROM\b|\bWHERE\b)", text, re.DOTALL
    )


def test_nobody_gives_a_run_another_id() -> None:
    found = {name: texts for name, one in modules().items() if (texts := ids_set(one))}
    assert found == {}
    statements = {name: statement.text for name, statement in all_statements().items()}
    assert ids_set_by(statements.values()) == []
    writers = [name for name, text in statements.items() if _set_clauses(text)]
    assert {"claim", "checkpoint", "close", "hand_back", "set_outcome", "answer", "wake"} <= set(
        writers
    )
    assert ids_set(example("Q = 'UPDATE executions_execution e SET state = 1, id = 2 WHERE x'"))


def test_only_the_chain_sends_to_workers() -> None:
    sending = {"apply_async", "send_task", "delay", "basic_publish"}
    assert {name for name, one in modules().items() if sending & one.calls} == {
        "executions.placement.chain"
    }


def test_seeds_and_backoffs_come_from_one_place() -> None:
    users = {name for name, one in modules().items() if {"derive_seed", "backoff_ms"} & one.calls}
    assert users == {"executions.semantics.attempt", "executions.semantics.decisions"}


def test_idempotency_is_asked_in_one_place() -> None:
    users = {
        name
        for name, one in modules().items()
        if imported(one, "executions.submission.idempotency")
    }
    assert users == {"executions.submission.submit"}


def test_requests_neither_begin_nor_commit_a_transaction() -> None:
    """Services own theirs, so none is open around a view."""
    assert not any(database.get("ATOMIC_REQUESTS") for database in settings.DATABASES.values())
    ending = {"atomic", "commit", "rollback", "savepoint", "set_autocommit"}
    assert {name: found for name, one in under(*API).items() if (found := ending & one.calls)} == {}
    assert {"atomic"} & modules()["executions.services.publishing"].calls


def test_connections_to_the_database_are_opened_by_the_platform_alone() -> None:
    """Everybody else takes the one of the scope; embedded servers and the check before a start have no scope yet.

    To databases of customers a run connects from its runtime.
    """
    opening = {"psycopg.connect", "psycopg.AsyncConnection.connect", "ConnectionPool"}
    openers = {name for name, one in modules().items() if opening & one.calls}
    theirs = {
        "isolane.providers.database",
        "isolane.providers.transport",
    }  # the latter to HTTP servers
    ours = {"orchestrator.embedded.postgres", "orchestrator.preflight"}
    assert openers == ours | theirs | {"orchestrator.embedded.customer"}


# --- warnings to authors
def test_authors_are_told_that_outputs_are_seen() -> None:
    text = " ".join((ROOT / "docs" / "nodes.md").read_text(encoding="utf-8").split())
    (line,) = re.findall(
        r"- \*\*Put secrets into ([^*]+)\*\* All of these are stored and shown", text
    )
    assert {"output", "variables", "logs"} <= set(re.findall(r"\w+", line))
