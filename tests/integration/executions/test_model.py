"""Random blueprints with random failures: the real core and a small model of the semantics agree."""

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models.functions import Now
from hypothesis import HealthCheck, given, settings

from executions.placement.models import Worker
from executions.services.publishing import publish
from executions.submission.replay import replay
from executions.submission.submit import RunRequest, submit
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import everything_of, make_boot, make_placed
from tests.model.driver import MAX_HELD_S, Driver, forget_workers
from tests.model.invariants import check_invariants
from tests.model.observation import observed
from tests.model.outcome import Outcome, differences
from tests.model.script import MEND, WORK, Act, Answer, Mishap, Moment, Script
from tests.model.semantics import Model
from tests.model.strategies import INPUTS, SEEDS, plays

LONG = os.environ.get("MODEL_EXAMPLES")  # for a long run, say 2000: other examples each time
EXAMPLES = int(LONG or 30)
pytestmark = [pytest.mark.usefixtures("broker"), pytest.mark.timeout(120 + EXAMPLES)]
many = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=LONG is None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def elsewhere(globex: TenantRef) -> Iterator[WorkerBoot]:
    """A worker that is in a step of another tenant during all examples; that run must never notice them."""
    boot = make_boot(capacity=1, name="elsewhere@test")
    with platform_scope():
        Worker.objects.update(lease_until=Now() + timedelta(days=1))
    LinkRunner(boot).begin("neighbour", make_placed(globex, boot), "one")
    before = everything_of(globex)
    yield boot
    assert everything_of(globex) == before


class Stage:
    """The place in which the runs of one example are played."""

    def __init__(self, tenant: TenantRef, stranger: TenantRef, elsewhere: WorkerBoot) -> None:
        self._tenant = tenant
        self._stranger = stranger
        self._elsewhere = elsewhere

    def play(
        self, document: dict[str, Any], script: Script, inputs: dict[str, Any], seed: int
    ) -> Outcome:
        """Compare the core with the model, twice."""
        model = Model(
            document=document, script=script, seed=seed, inputs=inputs, max_held_s=MAX_HELD_S
        )
        run_id, seen = self._driven(script, lambda: self._submit(document, inputs, seed))
        assert differences(seen, model.run()) == {}
        _, again = self._driven(script, lambda: self._replay(run_id))
        assert differences(again, seen) == {}
        return seen

    def _driven(self, script: Script, start: Callable[[], UUID]) -> tuple[UUID, Outcome]:
        """Run to the end, and check the invariants of every run."""
        try:
            driver = Driver(self._tenant, script, stranger=self._stranger)
            run_id = start()
            driver.run(run_id)
            check_invariants(self._tenant, run_id, driver)
            return run_id, observed(self._tenant, run_id, driver)
        finally:
            forget_workers(but=self._elsewhere)

    def _submit(self, document: dict[str, Any], inputs: dict[str, Any], seed: int) -> UUID:
        with tenant_scope(self._tenant):
            number = publish(document).number
        run = submit(
            self._tenant,
            RunRequest(
                blueprint=document["name"],
                version=number,
                inputs=inputs,
                requested_by="tests",
                seed=seed,
            ),
        ).execution
        return run.id

    def _replay(self, run_id: UUID) -> UUID:
        return replay(self._tenant, run_id, requested_by="tests").execution.id


@pytest.fixture
def stage(acme: TenantRef, globex: TenantRef, elsewhere: WorkerBoot) -> Stage:
    """Of acme."""
    return Stage(acme, globex, elsewhere)


@pytest.mark.parametrize("express", [False, True], ids=["chain", "express"])
def test_the_core_and_the_model_agree(stage: Stage, express: bool) -> None:
    @many
    @given(play=plays(express=express), inputs=INPUTS, seed=SEEDS)
    def agree(play: tuple[dict[str, Any], Script], inputs: dict[str, Any], seed: int) -> None:
        stage.play(*play, inputs, seed)

    agree()


# --- small plays that random ones seldom come to
LOST = Act(mishap=Mishap.DIES)
APPROVED, REJECTED, UNHEARD = (Act(answer=answer) for answer in Answer)
WITHDRAWN = Act(answer=Answer.APPROVE, mishap=Mishap.CANCEL, moment=Moment.PARKED)
MENDED = {"on_failure": "recover", "recover": {"uses": MEND}}


def flow(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A blueprint whose steps are called a, b and so on."""
    named = [{"key": key, "uses": WORK, **step} for key, step in zip("abc", steps, strict=False)]
    return {"name": "flow", "steps": named, **fields}


def calls(**acts: list[Act]) -> Script:
    """Return the acts of the nodes; `mend` is the recovery of the first step."""
    nodes = {("a", MEND) if key == "mend" else (key, WORK): each for key, each in acts.items()}
    return Script(calls={node: tuple(each) for node, each in nodes.items()}, stranger=True)


@pytest.mark.parametrize("express", [False, True], ids=["chain", "express"])
@pytest.mark.parametrize(
    ("document", "script", "state", "code"),
    [
        pytest.param(
            flow(MENDED),
            calls(a=[Act(code="UNKNOWN_ERROR")], mend=[Act(code="TIMEOUT")]),
            *("failed", "UNKNOWN_ERROR"),
            id="a recovery that takes too long ends the run with what it should have mended",
        ),
        pytest.param(
            flow(MENDED),
            calls(a=[Act(code="TIMEOUT")], mend=[Act(code="UNKNOWN_ERROR")]),
            *("timed_out", "TIMEOUT"),
            id="a recovery that fails ends the run with what it should have mended",
        ),
        pytest.param(
            flow(MENDED, budget={"tokens": 1}),
            calls(a=[Act(code="UNKNOWN_ERROR", cost="1")]),
            *("failed", "BUDGET_EXCEEDED"),
            id="a budget that is spent stops a recovery",
        ),
        pytest.param(
            flow(MENDED),
            calls(a=[Act(code="UNKNOWN_ERROR")], mend=[Act(mishap=Mishap.CANCEL)]),
            *("cancelled", "CANCELLED"),
            id="a recovery can be cancelled",
        ),
        pytest.param(
            flow({}, {"guarantee": "best_effort"}, outputs={"o": "${steps.a.ok}"}),
            calls(b=[LOST]),
            *("succeeded", ""),
            id="a run that ends by a loss has its outputs",
        ),
        pytest.param(
            flow({"guarantee": "at_most_once", "on_failure": "continue"}, outputs={"o": "${length(inputs.n)}"}),
            calls(a=[LOST]),
            *("failed", "POLICY_VIOLATION"),
            id="a run that ends by a loss may have none",
        ),
        pytest.param(
            flow({"on_failure": "retry"}),
            calls(a=[Act(code="TRANSIENT_ERROR", mishap=Mishap.LAPSES, moment=Moment.AFTER)]),
            *("succeeded", ""),
            id="the time of a retry outlives a worker",
        ),
        pytest.param(
            flow({"on_failure": "retry"}),
            calls(a=[Act(code="TRANSIENT_ERROR", mishap=Mishap.CANCEL, moment=Moment.AFTER)]),
            *("cancelled", "CANCELLED"),
            id="a run that waits for a retry can be cancelled",
        ),
        pytest.param(
            flow({"guarantee": "best_effort"}, {}),
            calls(a=[LOST], b=[LOST] * 4),
            *("succeeded", ""),
            id="what a loss comes to is a checkpoint between losses",
        ),
        pytest.param(
            flow({}, {"when": "${steps.a.approved}"}, outputs={"o": "${steps.b.ok}"}),
            calls(a=[REJECTED]),
            *("succeeded", ""),
            id="a rejection is an answer",
        ),
        pytest.param(
            flow({}, {"with": {"x": "${vars.v}"}}),
            calls(a=[Act(answer=Answer.REJECT, variables={"v": "x"})]),
            *("succeeded", ""),
            id="what a step sets before it asks is kept",
        ),
        pytest.param(
            flow({}, outputs={"o": "${length(inputs.n)}"}),
            calls(a=[APPROVED]),
            *("failed", "POLICY_VIOLATION"),
            id="an answer that ends a run may find no outputs",
        ),
        pytest.param(
            flow({}, {}),
            calls(a=[UNHEARD]),
            *("timed_out", "TIMEOUT"),
            id="a question that nobody answers fails its step",
        ),
        pytest.param(
            flow({"on_failure": "continue"}),
            calls(a=[UNHEARD]),
            *("succeeded", ""),
            id="silence may end a run well",
        ),
        pytest.param(
            flow({"on_failure": "retry", "retry": {"attempts": 4}}),
            calls(a=[UNHEARD, UNHEARD, UNHEARD, APPROVED]),
            *("succeeded", ""),
            id="what nobody answers is asked again, at last after a backoff without a slot",
        ),
        pytest.param(
            flow(MENDED),
            calls(a=[UNHEARD], mend=[APPROVED]),
            *("succeeded", ""),
            id="a recovery may ask whether to go on",
        ),
        pytest.param(
            flow(MENDED),
            calls(a=[Act(code="UNKNOWN_ERROR")], mend=[UNHEARD]),
            *("failed", "UNKNOWN_ERROR"),
            id="a recovery that nobody answers ends the run with what it should have mended",
        ),
        pytest.param(
            flow({}, {}),
            calls(a=[WITHDRAWN]),
            *("cancelled", "CANCELLED"),
            id="a run that asks can be cancelled",
        ),
        pytest.param(
            flow(MENDED),
            calls(a=[Act(code="UNKNOWN_ERROR")], mend=[WITHDRAWN]),
            *("cancelled", "CANCELLED"),
            id="a recovery that asks can be cancelled",
        ),
        pytest.param(
            flow({}, {}),
            calls(a=[Act(answer=Answer.APPROVE, mishap=Mishap.CANCEL, moment=Moment.AFTER)]),
            *("cancelled", "CANCELLED"),
            id="a run that is about to ask can be cancelled",
        ),
        pytest.param(
            flow({}),
            calls(a=[Act(answer=Answer.APPROVE, mishap=Mishap.OVERDUE, moment=Moment.AFTER)]),
            *("succeeded", ""),
            id="an answer that ends a run takes none of its time",
        ),
        pytest.param(
            flow({}, {}),
            calls(a=[Act(answer=Answer.APPROVE, mishap=Mishap.OVERDUE, moment=Moment.AFTER)]),
            *("timed_out", "TIMEOUT"),
            id="an answer gives a run no more time",
        ),
        pytest.param(
            flow({}, {}),
            calls(a=[Act(answer=Answer.APPROVE, mishap=Mishap.DIES, moment=Moment.AFTER)], b=[LOST] * 4),
            *("succeeded", ""),
            id="an answer is a checkpoint between losses",
        ),
    ],
)  # fmt: skip
def test_they_agree_on(
    stage: Stage, document: dict[str, Any], script: Script, state: str, code: str, express: bool
) -> None:
    seen = stage.play({**document, "express": express}, script, {"n": 1}, 7)
    assert (seen.state, seen.code) == (state, code)
