"""The verdict sees each kind of broken promise, and nothing in runs that kept theirs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from executions.blueprints.plan import plan
from trials.chaos.findings import Kind
from trials.chaos.rows import Effect, EventRow, Evidence, Heard, RunRow, StepRow, Told, Violation
from trials.chaos.verdict import findings

RUN, OTHER = UUID(int=1), UUID(int=2)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PID = 4711
RECOVER = {"uses": "chaos.mend", "with": {}}
STEPS: list[dict[str, Any]] = [
    {"key": "work", "uses": "chaos.work"},
    {"key": "pay", "uses": "chaos.pay", "guarantee": "exactly_once", "on_failure": "retry"},
    {"key": "send", "uses": "chaos.send", "guarantee": "at_most_once"},
    {"key": "try", "uses": "chaos.send", "guarantee": "best_effort"},
    {"key": "nap", "uses": "flow.sleep"},
    {"key": "mended", "uses": "chaos.work", "on_failure": "recover", "recover": RECOVER},
    {"key": "last", "uses": "chaos.work", "on_failure": "continue", "with": {"fails": 99}},
]
PATHS = [str(step["key"]) for step in STEPS]


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


class Story:
    """A run whose steps take a second each and succeed at once, until something of it is changed."""

    def __init__(self) -> None:
        self.run = RunRow(id=RUN, tenant="acme", blueprint="b", state="succeeded")
        self.steps: dict[str, StepRow] = {}
        self.events: list[tuple[str, str, dict[str, Any]]] = [("execution.queued", "", {})]
        self.starts: list[Told] = []
        self.dones: list[Told] = []
        self.effects = [Effect(execution=RUN, step="pay", key=f"{RUN}:pay")]
        self.extra: dict[str, Any] = {}
        for position, path in enumerate(PATHS):
            self.succeed(path, position)
        self.happens("execution.succeeded")

    def happens(self, kind: str, step: str = "", **data: Any) -> None:
        self.events.append((kind, step, data))

    def succeed(self, path: str, position: int) -> None:
        self.happens("step.started", path, epoch=1, attempt=1)
        self.happens("step.succeeded", path, attempt=1)
        self.steps[path] = StepRow(
            execution=RUN,
            path=path,
            state="succeeded",
            attempt=1,
            epoch=1,
            finished_at=at(position + 0.9),
        )
        if path != "nap":
            self.tells(path, position)

    def tells(self, path: str, seconds: float, *, done: bool = True, **about: Any) -> None:
        """A step tells the judge that it began and, half a second later, that it is done."""
        told = Told(
            execution=RUN, step=path, at=at(seconds), **{"epoch": 1, "attempt": 1, "pid": 9} | about
        )
        self.starts.append(told)
        if done:
            self.dones.append(replace(told, at=at(seconds + 0.5)))

    def silent(self, path: str) -> None:
        """The judge has not heard that the step was done."""
        self.dones = [told for told in self.dones if told.step != path]

    def change(self, path: str, **row: Any) -> None:
        self.steps[path] = replace(self.steps[path], **row)

    def end(self, state: str, code: str = "") -> None:
        """The run ends in another way."""
        self.run = replace(self.run, state=state, code=code)
        self.events[-1] = (f"execution.{state}", "", {})

    def fail(self, path: str, code: str, *, message: str = "", **data: Any) -> None:
        """The step fails where it has succeeded."""
        at_ = self.events.index(("step.succeeded", path, {"attempt": 1}))
        self.events[at_] = ("step.failed", path, {"attempt": 1, "code": code, **data})
        self.change(path, state="failed", code=code, message=message)
        self.silent(path)

    def cut_after(self, path: str, state: str = "skipped") -> None:
        """The run ended here: what comes behind has not begun."""
        for later in PATHS[PATHS.index(path) + 1 :]:
            self.change(later, state=state, attempt=0, epoch=0, finished_at=at(10))
            self.events = [event for event in self.events if event[1] != later]
            self.starts = [told for told in self.starts if told.step != later]
            self.silent(later)

    def evidence(self) -> Evidence:
        events = [
            EventRow(execution=RUN, sequence=number, kind=kind, step=step, data=data)
            for number, (kind, step, data) in enumerate(self.events, 1)
        ]
        told: dict[str, Any] = {
            "plans": {"b": plan({"name": "b", "steps": STEPS})},
            "submitted": {RUN},
            "cancelled": set(),
            "runs": [replace(self.run, last_event=self.run.last_event or len(events))],
            "steps": list(self.steps.values()),
            "events": events,
            "heard": Heard(starts=self.starts, dones=self.dones, effects=self.effects),
            "killed": {PID},
        }
        return Evidence(**told | self.extra)


@pytest.fixture
def story() -> Story:
    return Story()


def found(story: Story) -> list[Kind]:
    return [finding.kind for finding in findings(story.evidence())]


def said(story: Story) -> str:
    return "\n".join(str(finding) for finding in findings(story.evidence()))


# --- what is as it should be
def test_a_run_that_kept_its_promises(story: Story) -> None:
    assert said(story) == ""


def test_a_step_that_may_run_again_after_a_loss(story: Story) -> None:
    story.events.insert(1, ("step.started", "work", {"epoch": 1, "attempt": 1}))
    story.events[2] = ("step.started", "work", {"epoch": 2, "attempt": 1})
    story.starts = [told for told in story.starts if told.step != "work"]
    story.silent("work")
    story.tells("work", -20, done=False)
    story.tells("work", 0, epoch=2)
    story.change("work", epoch=2)
    assert said(story) == ""


def test_a_cut_at_most_once_step_ends_its_run(story: Story) -> None:
    story.fail("send", "OUTCOME_UNKNOWN")
    story.cut_after("send")
    story.end("failed", "OUTCOME_UNKNOWN")
    assert said(story) == ""


def test_a_cut_best_effort_step_does_not(story: Story) -> None:
    story.fail("try", "OUTCOME_UNKNOWN")
    assert said(story) == ""


def test_a_planned_failure_that_lets_the_run_go_on(story: Story) -> None:
    story.fail("last", "TRANSIENT_ERROR")
    assert said(story) == ""


def test_a_runtime_that_was_killed_fails_its_step(story: Story) -> None:
    story.starts = [replace(told, pid=PID) for told in story.starts]
    story.fail("work", "UNKNOWN_ERROR", message="the runtime died (signal SIGKILL)")
    story.cut_after("work")
    story.effects = []
    story.end("failed", "UNKNOWN_ERROR")
    assert said(story) == ""


def test_a_step_that_was_recovered(story: Story) -> None:
    story.starts = [replace(told, pid=PID) for told in story.starts]
    place = story.events.index(("step.succeeded", "mended", {"attempt": 1}))
    story.events[place:place] = [
        ("step.retrying", "mended", {"attempt": 1, "code": "RESOURCE_ERROR", "recovering": True}),
        ("step.started", "mended", {"epoch": 1, "attempt": 2}),
    ]
    story.silent("mended")
    story.tells("mended", 5.2, role="recover", attempt=2)
    story.change("mended", attempt=2, code="RESOURCE_ERROR", cause="recovered")
    assert said(story) == ""


def test_a_run_that_was_cancelled(story: Story) -> None:
    story.cut_after("send", "cancelled")
    story.end("cancelled", "CANCELLED")
    story.extra["cancelled"] = {RUN}
    assert said(story) == ""


# --- lost, and too many
@pytest.mark.parametrize("state", ["queued", "running", "waiting"])
def test_a_run_that_did_not_end(story: Story, state: str) -> None:
    story.end(state)
    assert found(story) == [Kind.LOST]
    assert f"{RUN} of acme is {state}" in said(story)


def test_a_run_that_is_not_there(story: Story) -> None:
    story.extra["submitted"] = {RUN, OTHER}
    assert found(story) == [Kind.LOST]
    assert str(OTHER) in said(story)


def test_a_run_that_nobody_submitted(story: Story) -> None:
    story.extra["submitted"] = set()
    assert found(story) == [Kind.TWICE]


# --- what ran twice
def test_a_unique_key_that_was_taken(story: Story) -> None:
    violation = Violation(execution=RUN, step="send", epoch=2, attempt=1, what="once_pkey")
    told = replace(story.evidence().heard, violations=[violation])
    story.extra["heard"] = told
    assert found(story) == [Kind.TWICE]
    assert f"{RUN} send: once_pkey" in said(story)


def test_two_tasks_of_one_link_that_succeeded(story: Story) -> None:
    story.extra["successes"] = {(str(RUN), 1, "pay"): 2, (str(RUN), 2, "pay"): 1}
    assert found(story) == [Kind.TWICE]
    assert f"{RUN} pay: 2 tasks of epoch 1" in said(story)


@pytest.mark.parametrize("path", ["send", "try"])
def test_a_step_that_may_not_run_again_after_a_loss(story: Story, path: str) -> None:
    place = story.events.index(("step.started", path, {"epoch": 1, "attempt": 1}))
    story.events.insert(place, ("step.started", path, {"epoch": 0, "attempt": 1}))
    story.tells(path, -5, epoch=0)
    assert set(found(story)) == {Kind.TWICE}
    assert f"{RUN} {path}" in said(story)


def test_more_attempts_than_the_step_has(story: Story) -> None:
    place = story.events.index(("step.succeeded", "work", {"attempt": 1}))
    story.events[place:place] = [
        ("step.retrying", "work", {"attempt": 1}),
        ("step.started", "work", {"epoch": 1, "attempt": 2}),
    ]
    story.tells("work", 0.6, attempt=2)
    story.change("work", attempt=2)
    assert found(story) == [Kind.TWICE]


def test_an_attempt_that_was_claimed_twice(story: Story) -> None:
    story.events.insert(1, ("step.started", "work", {"epoch": 1, "attempt": 1}))
    assert found(story) == [Kind.TWICE]


def test_a_start_without_a_claim(story: Story) -> None:
    story.tells("work", -3, epoch=7)
    assert Kind.UNKNOWN_START in found(story)


def test_a_later_epoch_that_begins_while_an_earlier_one_is_at_it(story: Story) -> None:
    story.events.insert(1, ("step.started", "work", {"epoch": 0, "attempt": 1}))
    story.tells("work", -0.3, epoch=0)  # done half a second later
    assert found(story) == [Kind.TWICE]
    assert "was at it until" in said(story)


def test_an_earlier_epoch_that_begins_after_a_later_one(story: Story) -> None:
    story.events.insert(1, ("step.started", "work", {"epoch": 0, "attempt": 1}))
    story.tells("work", 0.2, epoch=0, done=False)
    assert found(story) == [Kind.TWICE]


def test_two_effects_of_one_step(story: Story) -> None:
    story.effects.append(Effect(execution=RUN, step="pay", key="another"))
    assert found(story) == [Kind.TWICE]


# --- a completed step that ran again
def test_a_start_after_the_end_of_its_step(story: Story) -> None:
    story.events.insert(1, ("step.started", "work", {"epoch": 2, "attempt": 1}))
    story.tells("work", 3, epoch=2)
    assert Kind.AGAIN in found(story)
    assert "the step was succeeded at" in said(story)


def test_a_claim_after_the_end_of_its_step(story: Story) -> None:
    story.events.insert(4, ("step.started", "work", {"epoch": 2, "attempt": 1}))
    assert found(story) == [Kind.AGAIN]


def test_a_step_that_ended_twice(story: Story) -> None:
    story.events.insert(4, ("step.failed", "work", {"attempt": 1}))
    assert found(story) == [Kind.AGAIN]


# --- what is missing
@pytest.mark.parametrize("path", ["work", "pay", "send", "try"])
def test_a_step_that_succeeded_and_was_never_done(story: Story, path: str) -> None:
    story.silent(path)
    assert found(story) == [Kind.MISSING]


def test_a_step_that_succeeded_in_another_attempt_than_it_was_done_in(story: Story) -> None:
    story.change("work", epoch=2)
    assert found(story) == [Kind.MISSING]


def test_an_exactly_once_step_without_its_effect(story: Story) -> None:
    story.effects = []
    assert found(story) == [Kind.MISSING]
    assert "pay (exactly_once) succeeded and has no effect" in said(story)


# --- how steps and runs ended
@pytest.mark.parametrize("code", ["INTERNAL", "POLICY_VIOLATION", "TRANSIENT_ERROR"])
def test_a_failure_that_nothing_explains(story: Story, code: str) -> None:
    story.fail("work", code)
    story.cut_after("work")
    story.effects = []
    story.end("failed", code)
    assert Kind.ENDED_WRONG in found(story)
    assert f"{RUN} work: epoch 1, attempt 1 failed with {code}" in said(story)


def test_a_step_that_may_run_again_and_was_given_up(story: Story) -> None:
    story.fail("mended", "OUTCOME_UNKNOWN")
    assert "it is at_least_once" in said(story)


def test_a_runtime_that_died_and_nobody_has_killed(story: Story) -> None:
    story.fail("last", "UNKNOWN_ERROR", message="the runtime died (signal SIGKILL)")
    assert found(story) == [Kind.ENDED_WRONG]
    assert "nobody has killed its runtime 9" in said(story)


def test_a_fault_of_the_worker_itself(story: Story) -> None:
    story.starts = [replace(told, pid=PID) for told in story.starts]
    story.fail("last", "UNKNOWN_ERROR", message="The worker could not run this step")
    assert found(story) == [Kind.ENDED_WRONG]


def test_more_runtimes_that_died_than_were_killed(story: Story) -> None:
    story.starts = [replace(told, pid=PID) for told in story.starts]
    story.fail("last", "RESOURCE_ERROR")
    assert said(story) == ""
    place = story.events.index(("step.succeeded", "mended", {"attempt": 1}))
    story.events[place:place] = [
        ("step.retrying", "mended", {"attempt": 1, "code": "RESOURCE_ERROR"}),
    ]
    assert found(story) == [Kind.ENDED_WRONG]
    assert "2 attempts failed with their runtime, but 1 were killed" in said(story)


def test_a_run_that_was_cancelled_by_nobody(story: Story) -> None:
    story.cut_after("send", "cancelled")
    story.end("cancelled", "CANCELLED")
    assert found(story) == [Kind.ENDED_WRONG]


@pytest.mark.parametrize("state", ["pending", "running", "retrying", "cancelled"])
def test_a_run_that_succeeded_with_a_step_that_did_not_end(story: Story, state: str) -> None:
    story.change("last", state=state)
    assert found(story) == [Kind.ENDED_WRONG]
    assert f"{RUN} is succeeded, but last is {state}" in said(story)


def test_a_run_that_succeeded_though_a_step_ended_it(story: Story) -> None:
    story.fail("send", "OUTCOME_UNKNOWN")
    assert found(story) == [Kind.ENDED_WRONG]


def test_a_run_that_failed_though_no_step_ended_it(story: Story) -> None:
    story.fail("try", "OUTCOME_UNKNOWN")
    story.cut_after("try")
    story.end("failed", "OUTCOME_UNKNOWN")
    assert found(story) == [Kind.ENDED_WRONG]


def test_a_run_whose_code_is_not_that_of_the_step_that_ended_it(story: Story) -> None:
    story.fail("send", "OUTCOME_UNKNOWN")
    story.cut_after("send")
    story.end("failed", "WORKER_LOST")
    assert said(story) == ""  # the run's own end
    story.end("failed", "UNKNOWN_ERROR")
    assert found(story) == [Kind.ENDED_WRONG]


def test_a_run_that_failed_and_went_on(story: Story) -> None:
    story.fail("send", "OUTCOME_UNKNOWN")
    story.end("failed", "OUTCOME_UNKNOWN")
    assert set(found(story)) == {Kind.ENDED_WRONG}
    assert "but try is succeeded" in said(story)


# --- events
def test_a_gap_in_the_numbers_of_events(story: Story) -> None:
    whole = story.evidence().events
    story.extra["events"] = [event for event in whole if event.sequence != 2]
    assert Kind.EVENTS in found(story)
    story.extra["events"] = whole
    story.run = replace(story.run, last_event=99)
    assert found(story) == [Kind.EVENTS]


def test_a_run_that_ended_twice(story: Story) -> None:
    story.happens("execution.failed")
    assert found(story) == [Kind.EVENTS]


def test_what_is_said_after_the_end_is_no_second_end(story: Story) -> None:
    story.happens("fence.refused", epoch=1)
    assert said(story) == ""
