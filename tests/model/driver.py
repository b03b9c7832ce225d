"""Drives one run through the real core as Celery, the worker's loop and the tick would, under a script.

Timing: in the test's own thread. Model: sync; real PostgreSQL, no broker: what is published is a list. Guarantee: the
same script gives the same order of events. Failure: a run that does not come to an end fails the test.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from celery.exceptions import Ignore
from django.db.models.functions import Now

from executions.models import Approval, ApprovalState, Step
from executions.placement import chain, dispatch
from executions.placement.chain import ChainSpec, ChainTail, following
from executions.placement.dispatch import admit_and_send
from executions.placement.models import Due, Ticket, Worker
from executions.placement.registry import register, store_catalogue
from executions.semantics import decisions
from executions.semantics.attempt import AttemptOutcome
from executions.semantics.decisions import StepDecision
from executions.services.waking import wake_due
from executions.states import TERMINAL_EXECUTION, ExecutionState, TicketState
from executions.submission.cancel import request_cancel
from executions.worker.boot import WorkerBoot
from executions.worker.links import closing
from executions.worker.links.runner import LinkRunner, StepFailed
from executions.worker.links.step_runner import StepRunner
from executions.worker.loops import reaper
from executions.worker.loops.lease import EXIT_FENCED, LeaseLoop, kill_runtimes
from isolane.protocol import Cost, Run
from isolane.results import Code, StepResult
from resources.placement import Placement
from resources.runtimes.base import OnFrame
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import LEVEL, let_lapse, resend_after, run_of, ticket_of
from tests.model.backend import ScriptedBackend, ScriptedRuntime
from tests.model.invariants import check_suspended
from tests.model.outcome import Call
from tests.model.question import Question
from tests.model.script import (
    ANSWER_S,
    Act,
    Answer,
    Mishap,
    Moment,
    Prompter,
    Script,
    output_of,
)

MAX_HELD_S = 2.5  # short, so that backoffs of few attempts park a run
MAX_TURNS = 300
PATIENCE_S = 0.001  # what a backoff is waited for
NOTHING = frozenset({None})
HARMLESS = NOTHING | {Mishap.DIES, Mishap.DRAINS, Mishap.MESSAGE_LOST}
CANCELS = frozenset({Mishap.CANCEL, Mishap.CANCEL_LATE})


class WorkerDied(BaseException):
    """The process is gone: nothing of ours goes on in it."""


@dataclass(eq=False)
class Host:
    """A worker and what is known of it from outside."""

    boot: WorkerBoot
    backend: ScriptedBackend
    links: LinkRunner
    gone: bool = False  # dead, or taken for dead
    fenced: list[int] = field(default_factory=list)

    def turn(self) -> None:
        """Do what its loop does once a second."""
        LeaseLoop(self.boot, exit_process=self.fenced.append).turn()


class Driver:
    """Of one run."""

    def __init__(self, tenant: TenantRef, script: Script, *, stranger: TenantRef) -> None:
        self.hosts: list[Host] = []
        self.calls: list[Call] = []
        self.keys: dict[tuple[str, str], set[str]] = {}
        self.successes: list[str] = []
        self.waits: dict[tuple[str, int], float] = {}
        self._tenant = tenant
        self._stranger = stranger
        self._script = script
        self._prompter = Prompter(script)
        self._messages: list[ChainSpec] = []
        self._links = 0
        self._queued = 0
        self._act: Act | None = None  # of the attempt at work
        self._written: Act | None = None  # of the last checkpoint
        self._drops = False
        self._overdue = False
        self._execution_id: UUID | None = None
        self.new_host()

    def new_host(self) -> None:
        """Another worker is started."""
        backend = ScriptedBackend(level=LEVEL, play=self._play)
        name = f"m{len(self.hosts)}@test"
        boot = WorkerBoot(node_name=name, capacity=1, backends={LEVEL: backend})
        resend_after(boot, 1e-6)
        with platform_scope():
            register(
                boot=boot.id,
                node_name=name,
                lane=boot.lane,
                capacity=1,
                levels=[LEVEL],
                catalogue=store_catalogue(backend.describe()),
            )
        self.hosts.append(Host(boot, backend, LinkRunner(boot)))

    def run(self, execution_id: UUID) -> None:
        """Until the run has ended."""
        self._execution_id = execution_id
        with pytest.MonkeyPatch.context() as patch:
            self._patch(patch)
            for _ in range(MAX_TURNS):
                if run_of(self._tenant, execution_id).state in TERMINAL_EXECUTION:
                    return
                if self._messages:
                    self._deliver(self._messages.pop(0))
                else:
                    self._tick()
        raise AssertionError("the run does not come to an end")

    def _patch(self, patch: pytest.MonkeyPatch) -> None:
        driver, checkpoint, wait, may_claim_next = (
            self,
            StepRunner._checkpoint,
            StepRunner._wait,
            StepRunner._may_claim_next,
        )

        def written(body: StepRunner, outcome: AttemptOutcome) -> None:
            try:
                checkpoint(body, outcome)
            except StepFailed:
                driver._checkpointed(body)
                raise
            driver._checkpointed(body)

        def waited(body: StepRunner, seconds: float, deadline: float) -> None:
            wait(body, min(seconds, PATIENCE_S), deadline)
            driver._waited(seconds)

        def claims_next_unless_struck(body: StepRunner, decided: StepDecision) -> bool:
            # What strikes after a checkpoint strikes before the next claim, so they must be two statements; unless it
            # makes no difference, since nobody has begun what was claimed for a link that does not come.
            mishap = driver._act.at(Moment.AFTER) if driver._act else None
            harmless = HARMLESS if not body._context.run.plan.express else NOTHING
            return may_claim_next(body, decided) and mishap in harmless

        patch.setattr(StepRunner, "_may_claim_next", claims_next_unless_struck)
        patch.setattr(StepRunner, "_checkpoint", written)
        patch.setattr(StepRunner, "_wait", waited)
        for module in (closing, dispatch):
            patch.setattr(module, "publish", self._publish)
        patch.setattr(chain, "WINDOW", self._script.window)
        patch.setattr(decisions, "MAX_HELD_SECONDS", MAX_HELD_S)
        patch.setattr(reaper, "delete_lane", lambda lane: None)

    # --- as Celery
    def _publish(self, spec: ChainSpec, **_: Any) -> bool:
        if not self._drops:
            self._messages.append(spec)
        return True

    def _deliver(self, spec: ChainSpec) -> None:
        host = next(host for host in self.hosts if host.boot.lane == spec.placement.lane)
        if host.gone:
            return  # the lane went with it
        first = not self._links
        self._links += 1
        with self._struck(host):
            if first and self._script.start:
                self._strike(host, self._script.start)
                if self._drops:
                    return
            self._chain(host, spec)

    def _chain(self, host: Host, spec: ChainSpec) -> None:
        rest = following(spec)
        while rest and not host.fenced:  # else nobody consumes its lane any more
            *rest, link = rest
            follow = self._link(host, spec.placement, link.args[-1], rest)
            if self._script.twice:
                self._link(host, spec.placement, link.args[-1], rest)
            if self._drops:
                return
            rest = follow

    def _link(self, host: Host, placement: Placement, path: str, rest: ChainTail) -> ChainTail:
        self._links += 1
        task_id = str(self._links)
        host.links.begin(task_id, placement, path)
        try:
            follow = host.links.run(task_id, path, rest)
        except (Ignore, StepFailed):
            follow = []
        host.links.end(task_id)  # not for a worker that has died
        return follow

    @contextmanager
    def _struck(self, host: Host) -> Iterator[None]:
        """Clear what a mishap leaves behind once the links are over."""
        try:
            yield
        except WorkerDied:
            self._lapse(host)
            kill_runtimes(host.boot)  # without a KEEPALIVE they end themselves
        else:
            if host.gone:
                host.turn()
                assert host.fenced == [EXIT_FENCED]
        self._drops = False

    # --- as the worker's loop and the tick
    def _tick(self) -> None:
        for host in self.hosts:
            if not host.gone:
                host.turn()
        self._wake()
        ticket = ticket_of(self._id)
        if ticket is None or ticket.state != TicketState.WAITING:
            return
        if self._queued == self._script.cancelled_in_queue:
            self._cancel()
            return
        self._queued += 1
        admit_and_send()
        assert self._messages

    def _wake(self) -> None:
        ticket = ticket_of(self._id)
        if ticket is None or ticket.state != TicketState.PARKED:
            return
        question = self._asked()
        if self._written and self._written.at(Moment.PARKED) is Mishap.CANCEL:
            self._cancel()
        elif question:
            self._answer(question)
        else:
            self._let_time_pass()

    def _asked(self) -> Question | None:
        """Return the open question, if any; people of another tenant are refused."""
        if run_of(self._tenant, self._id).state != ExecutionState.SUSPENDED:
            return None
        check_suspended(self._tenant, self._id, self)
        question = Question(self._tenant, self._id)
        if self._script.stranger:
            question.refuse(self._stranger)
        return question

    def _answer(self, question: Question) -> None:
        assert self._written is not None
        assert self._written.answer is not None
        question.end(self._written.answer)
        if self._written.answer is not Answer.NOBODY:
            self.successes.append(question.step)

    def _let_time_pass(self) -> None:
        with platform_scope():
            assert Due.objects.filter(ref=self._id).update(at=Now()) == 1
        with tenant_scope(self._tenant):
            Step.objects.filter(execution_id=self._id, retry_at__gt=Now()).update(retry_at=Now())
        assert wake_due() == 1

    # --- as the node and its runtime
    def _play(
        self, runtime: ScriptedRuntime, run: Run, cancelled: threading.Event, on_frame: OnFrame
    ) -> StepResult:
        host = next(host for host in self.hosts if runtime in host.backend.runtimes)
        call = Call(step=run.step, node=run.uses, attempt=run.attempt, seed=run.seed)
        self.calls.append(call)
        self.keys.setdefault((run.step, run.uses), set()).add(run.idempotency_key)
        self._act = act = self._prompter.next(run.step, run.uses)
        on_frame(Cost(step=run.step, kind="tokens", amount=float(act.cost)))
        if act.kills:
            runtime.kill()
        mishap = act.at(Moment.DURING)
        if mishap:
            self._strike(host, mishap)
        if mishap is Mishap.DRAINS:
            kill_runtimes(host.boot)
            return _failed(run, Code.UNKNOWN_ERROR)
        if mishap in CANCELS:
            assert cancelled.is_set()
        if mishap is Mishap.CANCEL:
            return _failed(run, Code.CANCELLED)
        return self._result(act, run)

    def _result(self, act: Act, run: Run) -> StepResult:
        if act.code is not None:
            return _failed(run, Code(act.code))
        if act.answer:
            return StepResult.succeeded(
                step=run.step,
                attempt=run.attempt,
                output=None,
                variables=dict(act.variables),
                pause_s=ANSWER_S,
                question="May it?",
            )
        if act.at(Moment.DURING) is not Mishap.LAPSES:
            self.successes.append(run.step)
        return StepResult.succeeded(
            step=run.step,
            attempt=run.attempt,
            output=output_of(act, run.parameters),
            variables=dict(act.variables),
            pause_s=act.pause_s,
        )

    # --- what goes wrong
    def _checkpointed(self, body: StepRunner) -> None:
        self._written, self._act = self._act, None
        self._nobody_is_asked()
        mishap = self._written.at(Moment.AFTER) if self._written else None
        if mishap:
            struck = body._boot.id
            self._strike(next(host for host in self.hosts if host.boot.id == struck), mishap)

    def _nobody_is_asked(self) -> None:
        """Not while the context is open."""
        if self._written and self._written.answer:
            with tenant_scope(self._tenant):
                asked = Approval.objects.filter(execution_id=self._id, state=ApprovalState.OPEN)
                assert not asked.exists()

    def _strike(self, host: Host, mishap: Mishap) -> None:
        match mishap:
            case Mishap.DIES:
                raise WorkerDied
            case Mishap.LAPSES:
                self._lapse(host)
            case Mishap.DRAINS:
                host.boot.draining.set()
                host.turn()
                self.new_host()
            case Mishap.CANCEL | Mishap.CANCEL_LATE:
                self._cancel()
                host.turn()
            case Mishap.OVERDUE:
                self._overdue = True
                with platform_scope():
                    tickets = Ticket.objects.filter(execution_id=self._id)
                    assert tickets.update(deadline=Now() - timedelta(seconds=1)) == 1
            case Mishap.MESSAGE_LOST:
                self._drops = True

    def _lapse(self, host: Host) -> None:
        """The others end what it holds."""
        self.new_host()
        host.gone = True
        let_lapse(host.boot)
        assert reaper.reap("w2@test") == 1

    def _cancel(self) -> None:
        with tenant_scope(self._tenant):
            request_cancel(self._id, actor="tests")

    def _waited(self, seconds: float) -> None:
        """The time of the retry has come."""
        with tenant_scope(self._tenant):
            steps = Step.objects.filter(execution_id=self._id, retry_at__gt=Now())
            for path, attempt, state in steps.values_list("path", "attempt", "state"):
                failed = attempt - (state == "running")
                if not self._overdue:
                    self.waits[path, failed] = seconds
            steps.update(retry_at=Now())

    @property
    def _id(self) -> UUID:
        assert self._execution_id is not None
        return self._execution_id


def forget_workers(but: WorkerBoot) -> None:
    """Remove what an example has left; of a failed one, tickets and dues as well."""
    with platform_scope():
        Ticket.objects.exclude(worker_id=but.id).delete()
        Due.objects.all().delete()
        Worker.objects.exclude(boot=but.id).delete()


def _failed(run: Run, code: Code) -> StepResult:
    return StepResult.failed(step=run.step, attempt=run.attempt, code=code, message="scripted")
