"""The verdict finds each kind of broken promise, and nothing in runs that kept theirs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from executions.blueprints.plan import plan
from trials.chaos.findings import FindingKind
from trials.chaos.rows import (
    Effect,
    EventRow,
    Evidence,
    Observation,
    Observations,
    RunRow,
    StepRow,
    Violation,
)
from trials.chaos.verdict import findings

RUN, OTHER = UUID(int=1), UUID(int=2)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PID = 4711
RECOVER = {"uses": "chaos.recover", "with": {}}
STEPS: list[dict[str, Any]] = [
    {"key": "work", "uses": "chaos.work"},
    {"key": "pay", "uses": "chaos.pay", "guarantee": "exactly_once", "on_failure": "retry"},
    {"key": "send", "uses": "chaos.send", "guarantee": "at_most_once"},
    {"key": "try", "uses": "chaos.send", "guarantee": "best_effort"},
    {"key": "nap", "uses": "flow.sleep"},
    {"key": "recovered", "uses": "chaos.work", "on_failure": "recover", "recover": RECOVER},
    {"key": "last", "uses": "chaos.work", "on_failure": "continue", "with": {"fails": 99}},
]
PATHS = [str(step["key"]) for step in STEPS]


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


class SampleRun:
    """A run whose steps take a second each and succeed, until a test changes it."""

    def __init__(self) -> None:
        self.run = RunRow(id=RUN, tenant="acme", blueprint="b", state="succeeded")
        self.steps: dict[str, StepRow] = {}
        self.events: list[tuple[str, str, dict[str, Any]]] = [("execution.queued", "", {})]
        self.starts: list[Observation] = []
        self.dones: list[Observation] = []
        self.effects = [Effect(execution=RUN, step="pay", key=f"{RUN}:pay")]
        self.extra: dict[str, Any] = {}
        for position, path in enumerate(PATHS):
            self.succeed(path, position)
        self.add_event("execution.succeeded")

    def add_event(self, kind: str, step: str = "", **data: Any) -> None:
        self.events.append((kind, step, data))

    def succeed(self, path: str, position: int) -> None:
        self.add_event("step.started", path, epoch=1, attempt=1)
        self.add_event("step.succeeded", path, attempt=1)
        self.steps[path] = StepRow(
            execution=RUN,
            path=path,
            state="succeeded",
            attempt=1,
            epoch=1,
            finished_at=at(position + 0.9),
        )
        if path != "nap":
            self.observe(path, position)

    def observe(self, path: str, seconds: float, *, done: bool = True, **about: Any) -> None:
        """Record the start of a step and, half a second later, its end."""
        observation = Observation(
            execution=RUN, step=path, at=at(seconds), **{"epoch": 1, "attempt": 1, "pid": 9} | about
        )
        self.starts.append(observation)
        if done:
            self.dones.append(replace(observation, at=at(seconds + 0.5)))

    def not_done(self, path: str) -> None:
        """Remove the record that the step was done."""
        self.dones = [one for one in self.dones if one.step != path]

    def change(self, path: str, **row: Any) -> None:
        self.steps[path] = replace(self.steps[path], **row)

    def end(self, state: str, code: str = "") -> None:
        """End the run in another state."""
        self.run = replace(self.run, state=state, code=code)
        self.events[-1] = (f"execution.{state}", "", {})

    def fail(self, path: str, code: str, *, message: str = "", **data: Any) -> None:
        """Let the step fail instead of succeed."""
        at_ = self.events.index(("step.succeeded", path, {"attempt": 1}))
        self.events[at_] = ("step.failed", path, {"attempt": 1, "code": code, **data})
        self.change(path, state="failed", code=code, message=message)
        self.not_done(path)

    def end_after(self, path: str, state: str = "skipped") -> None:
        """Let the run end here: later steps have not started."""
        for later in PATHS[PATHS.index(path) + 1 :]:
            self.change(later, state=state, attempt=0, epoch=0, finished_at=at(10))
            self.events = [event for event in self.events if event[1] != later]
            self.starts = [one for one in self.starts if one.step != later]
            self.not_done(later)

    def evidence(self) -> Evidence:
        events = [
            EventRow(execution=RUN, sequence=number, kind=kind, step=step, data=data)
            for number, (kind, step, data) in enumerate(self.events, 1)
        ]
        rows: dict[str, Any] = {
            "plans": {"b": plan({"name": "b", "steps": STEPS})},
            "submitted": {RUN},
            "cancelled": set(),
            "runs": [replace(self.run, last_event=self.run.last_event or len(events))],
            "steps": list(self.steps.values()),
            "events": events,
            "observed": Observations(starts=self.starts, dones=self.dones, effects=self.effects),
            "killed": {PID},
        }
        return Evidence(**rows | self.extra)


@pytest.fixture
def sample() -> SampleRun:
    return SampleRun()


def found(sample: SampleRun) -> list[FindingKind]:
    return [finding.kind for finding in findings(sample.evidence())]


def texts(sample: SampleRun) -> str:
    return "\n".join(str(finding) for finding in findings(sample.evidence()))


# --- promises that were kept
def test_a_run_that_kept_its_promises(sample: SampleRun) -> None:
    assert texts(sample) == ""


def test_a_step_that_may_run_again_after_a_loss(sample: SampleRun) -> None:
    sample.events.insert(1, ("step.started", "work", {"epoch": 1, "attempt": 1}))
    sample.events[2] = ("step.started", "work", {"epoch": 2, "attempt": 1})
    sample.starts = [one for one in sample.starts if one.step != "work"]
    sample.not_done("work")
    sample.observe("work", -20, done=False)
    sample.observe("work", 0, epoch=2)
    sample.change("work", epoch=2)
    assert texts(sample) == ""


def test_an_interrupted_at_most_once_step_ends_its_run(sample: SampleRun) -> None:
    sample.fail("send", "OUTCOME_UNKNOWN")
    sample.end_after("send")
    sample.end("failed", "OUTCOME_UNKNOWN")
    assert texts(sample) == ""


def test_an_interrupted_best_effort_step_does_not(sample: SampleRun) -> None:
    sample.fail("try", "OUTCOME_UNKNOWN")
    assert texts(sample) == ""


def test_a_planned_failure_that_lets_the_run_continue(sample: SampleRun) -> None:
    sample.fail("last", "TRANSIENT_ERROR")
    assert texts(sample) == ""


def test_a_runtime_that_was_killed_fails_its_step(sample: SampleRun) -> None:
    sample.starts = [replace(one, pid=PID) for one in sample.starts]
    sample.fail("work", "UNKNOWN_ERROR", message="the runtime died (signal SIGKILL)")
    sample.end_after("work")
    sample.effects = []
    sample.end("failed", "UNKNOWN_ERROR")
    assert texts(sample) == ""


def test_a_step_that_was_recovered(sample: SampleRun) -> None:
    sample.starts = [replace(one, pid=PID) for one in sample.starts]
    place = sample.events.index(("step.succeeded", "recovered", {"attempt": 1}))
    sample.events[place:place] = [
        (
            "step.retrying",
            "recovered",
            {"attempt": 1, "code": "RESOURCE_ERROR", "recovering": True},
        ),
        ("step.started", "recovered", {"epoch": 1, "attempt": 2}),
    ]
    sample.not_done("recovered")
    sample.observe("recovered", 5.2, role="recover", attempt=2)
    sample.change("recovered", attempt=2, code="RESOURCE_ERROR", cause="recovered")
    assert texts(sample) == ""


def test_a_run_that_was_cancelled(sample: SampleRun) -> None:
    sample.end_after("send", "cancelled")
    sample.end("cancelled", "CANCELLED")
    sample.extra["cancelled"] = {RUN}
    assert texts(sample) == ""


# --- lost and unexpected runs
@pytest.mark.parametrize("state", ["queued", "running", "waiting"])
def test_a_run_that_did_not_end(sample: SampleRun, state: str) -> None:
    sample.end(state)
    assert found(sample) == [FindingKind.LOST]
    assert f"{RUN} of acme is {state}" in texts(sample)


def test_a_run_that_does_not_exist(sample: SampleRun) -> None:
    sample.extra["submitted"] = {RUN, OTHER}
    assert found(sample) == [FindingKind.LOST]
    assert str(OTHER) in texts(sample)


def test_a_run_that_was_not_submitted(sample: SampleRun) -> None:
    sample.extra["submitted"] = set()
    assert found(sample) == [FindingKind.TWICE]


# --- steps that ran twice
def test_a_unique_key_that_was_in_use(sample: SampleRun) -> None:
    violation = Violation(execution=RUN, step="send", epoch=2, attempt=1, what="once_pkey")
    observed = replace(sample.evidence().observed, violations=[violation])
    sample.extra["observed"] = observed
    assert found(sample) == [FindingKind.TWICE]
    assert f"{RUN} send: once_pkey" in texts(sample)


def test_two_tasks_of_one_link_that_succeeded(sample: SampleRun) -> None:
    sample.extra["successes"] = {(str(RUN), 1, "pay"): 2, (str(RUN), 2, "pay"): 1}
    assert found(sample) == [FindingKind.TWICE]
    assert f"{RUN} pay: 2 tasks of epoch 1" in texts(sample)


@pytest.mark.parametrize("path", ["send", "try"])
def test_a_step_that_may_not_run_again_after_a_loss(sample: SampleRun, path: str) -> None:
    place = sample.events.index(("step.started", path, {"epoch": 1, "attempt": 1}))
    sample.events.insert(place, ("step.started", path, {"epoch": 0, "attempt": 1}))
    sample.observe(path, -5, epoch=0)
    assert set(found(sample)) == {FindingKind.TWICE}
    assert f"{RUN} {path}" in texts(sample)


def test_more_attempts_than_the_step_has(sample: SampleRun) -> None:
    place = sample.events.index(("step.succeeded", "work", {"attempt": 1}))
    sample.events[place:place] = [
        ("step.retrying", "work", {"attempt": 1}),
        ("step.started", "work", {"epoch": 1, "attempt": 2}),
    ]
    sample.observe("work", 0.6, attempt=2)
    sample.change("work", attempt=2)
    assert found(sample) == [FindingKind.TWICE]


def test_an_attempt_that_was_claimed_twice(sample: SampleRun) -> None:
    sample.events.insert(1, ("step.started", "work", {"epoch": 1, "attempt": 1}))
    assert found(sample) == [FindingKind.TWICE]


def test_a_start_without_a_claim(sample: SampleRun) -> None:
    sample.observe("work", -3, epoch=7)
    assert FindingKind.UNKNOWN_START in found(sample)


def test_a_later_epoch_that_begins_while_an_earlier_one_is_active(sample: SampleRun) -> None:
    sample.events.insert(1, ("step.started", "work", {"epoch": 0, "attempt": 1}))
    sample.observe("work", -0.3, epoch=0)  # done half a second later
    assert found(sample) == [FindingKind.TWICE]
    assert "was active until" in texts(sample)


def test_an_earlier_epoch_that_begins_after_a_later_one(sample: SampleRun) -> None:
    sample.events.insert(1, ("step.started", "work", {"epoch": 0, "attempt": 1}))
    sample.observe("work", 0.2, epoch=0, done=False)
    assert found(sample) == [FindingKind.TWICE]


def test_two_effects_of_one_step(sample: SampleRun) -> None:
    sample.effects.append(Effect(execution=RUN, step="pay", key="another"))
    assert found(sample) == [FindingKind.TWICE]


# --- a completed step that ran again
def test_a_start_after_the_end_of_its_step(sample: SampleRun) -> None:
    sample.events.insert(1, ("step.started", "work", {"epoch": 2, "attempt": 1}))
    sample.observe("work", 3, epoch=2)
    assert FindingKind.AGAIN in found(sample)
    assert "the step was succeeded at" in texts(sample)


def test_a_claim_after_the_end_of_its_step(sample: SampleRun) -> None:
    sample.events.insert(4, ("step.started", "work", {"epoch": 2, "attempt": 1}))
    assert found(sample) == [FindingKind.AGAIN]


def test_a_step_that_ended_twice(sample: SampleRun) -> None:
    sample.events.insert(4, ("step.failed", "work", {"attempt": 1}))
    assert found(sample) == [FindingKind.AGAIN]


# --- missing effects
@pytest.mark.parametrize("path", ["work", "pay", "send", "try"])
def test_a_step_that_succeeded_and_was_never_done(sample: SampleRun, path: str) -> None:
    sample.not_done(path)
    assert found(sample) == [FindingKind.MISSING]


def test_a_step_that_succeeded_in_another_attempt_than_it_was_done_in(sample: SampleRun) -> None:
    sample.change("work", epoch=2)
    assert found(sample) == [FindingKind.MISSING]


def test_an_exactly_once_step_without_its_effect(sample: SampleRun) -> None:
    sample.effects = []
    assert found(sample) == [FindingKind.MISSING]
    assert "pay (exactly_once) succeeded and has no effect" in texts(sample)


# --- outcomes of steps and runs
@pytest.mark.parametrize("code", ["INTERNAL", "POLICY_VIOLATION", "TRANSIENT_ERROR"])
def test_a_failure_that_nothing_explains(sample: SampleRun, code: str) -> None:
    sample.fail("work", code)
    sample.end_after("work")
    sample.effects = []
    sample.end("failed", code)
    assert FindingKind.ENDED_WRONG in found(sample)
    assert f"{RUN} work: epoch 1, attempt 1 failed with {code}" in texts(sample)


def test_a_step_that_may_run_again_and_was_given_up(sample: SampleRun) -> None:
    sample.fail("recovered", "OUTCOME_UNKNOWN")
    assert "it is at_least_once" in texts(sample)


def test_a_runtime_that_died_without_a_fault(sample: SampleRun) -> None:
    sample.fail("last", "UNKNOWN_ERROR", message="the runtime died (signal SIGKILL)")
    assert found(sample) == [FindingKind.ENDED_WRONG]
    assert "no fault killed its runtime 9" in texts(sample)


def test_a_step_that_no_worker_could_run(sample: SampleRun) -> None:
    sample.fail("last", "WORKER_LOST")
    sample.end("failed", "WORKER_LOST")
    place = len(sample.events) - 1
    sample.events.insert(place, ("placement.lost", "", {"reason": "claim_unattended"}))
    assert found(sample) == [FindingKind.ENDED_WRONG]
    assert "none of its workers was lost" in texts(sample)
    sample.events[place] = ("placement.lost", "", {"reason": "worker_lost"})
    assert texts(sample) == ""


def test_a_fault_of_the_worker_itself(sample: SampleRun) -> None:
    sample.starts = [replace(one, pid=PID) for one in sample.starts]
    sample.fail("last", "UNKNOWN_ERROR", message="The worker could not run this step")
    assert found(sample) == [FindingKind.ENDED_WRONG]


def test_more_runtimes_that_died_than_were_killed(sample: SampleRun) -> None:
    sample.starts = [replace(one, pid=PID) for one in sample.starts]
    sample.fail("last", "RESOURCE_ERROR")
    assert texts(sample) == ""
    place = sample.events.index(("step.succeeded", "recovered", {"attempt": 1}))
    sample.events[place:place] = [
        ("step.retrying", "recovered", {"attempt": 1, "code": "RESOURCE_ERROR"}),
    ]
    assert found(sample) == [FindingKind.ENDED_WRONG]
    assert "2 attempts failed with their runtime, but 1 were killed" in texts(sample)


def test_a_run_that_was_cancelled_without_a_request(sample: SampleRun) -> None:
    sample.end_after("send", "cancelled")
    sample.end("cancelled", "CANCELLED")
    assert found(sample) == [FindingKind.ENDED_WRONG]


@pytest.mark.parametrize("state", ["pending", "running", "retrying", "cancelled"])
def test_a_run_that_succeeded_with_a_step_that_did_not_end(sample: SampleRun, state: str) -> None:
    sample.change("last", state=state)
    assert found(sample) == [FindingKind.ENDED_WRONG]
    assert f"{RUN} is succeeded, but last is {state}" in texts(sample)


def test_a_run_that_succeeded_though_a_step_ended_it(sample: SampleRun) -> None:
    sample.fail("send", "OUTCOME_UNKNOWN")
    assert found(sample) == [FindingKind.ENDED_WRONG]


def test_a_run_that_failed_though_no_step_ended_it(sample: SampleRun) -> None:
    sample.fail("try", "OUTCOME_UNKNOWN")
    sample.end_after("try")
    sample.end("failed", "OUTCOME_UNKNOWN")
    assert found(sample) == [FindingKind.ENDED_WRONG]


def test_a_run_whose_code_is_not_that_of_the_step_that_ended_it(sample: SampleRun) -> None:
    sample.fail("send", "OUTCOME_UNKNOWN")
    sample.end_after("send")
    sample.end("failed", "WORKER_LOST")
    assert texts(sample) == ""  # ends a run without a step
    sample.end("failed", "UNKNOWN_ERROR")
    assert found(sample) == [FindingKind.ENDED_WRONG]


def test_a_run_that_failed_and_continued(sample: SampleRun) -> None:
    sample.fail("send", "OUTCOME_UNKNOWN")
    sample.end("failed", "OUTCOME_UNKNOWN")
    assert set(found(sample)) == {FindingKind.ENDED_WRONG}
    assert "but try is succeeded" in texts(sample)


# --- events
def test_a_gap_in_the_numbers_of_events(sample: SampleRun) -> None:
    whole = sample.evidence().events
    sample.extra["events"] = [event for event in whole if event.sequence != 2]
    assert FindingKind.EVENTS in found(sample)
    sample.extra["events"] = whole
    sample.run = replace(sample.run, last_event=99)
    assert found(sample) == [FindingKind.EVENTS]


def test_a_run_that_ended_twice(sample: SampleRun) -> None:
    sample.add_event("execution.failed")
    assert found(sample) == [FindingKind.EVENTS]


def test_an_event_after_the_end_is_not_a_second_end(sample: SampleRun) -> None:
    sample.add_event("fence.refused", epoch=1)
    assert texts(sample) == ""
