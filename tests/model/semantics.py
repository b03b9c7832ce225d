"""The semantics of a run in plain Python: no rows, no workers, no messages. Knows nothing of how the core does it.

A worker, a placement and a context are here what they mean to a blueprint's author: something that may be lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NoReturn

from executions.semantics.seeds import backoff_ms, derive_seed
from tests.model.outcome import Call, Outcome, StepOutcome
from tests.model.references import Unresolvable, holds, resolved, stored
from tests.model.script import (
    ANSWER_S,
    CUTS,
    LOSSES,
    MEND,
    WORK,
    Act,
    Answer,
    Mishap,
    Moment,
    Prompter,
    Script,
    reply_of,
)
from tests.model.script import output_of as shown

BASE_MS = {
    "TRANSIENT_ERROR": 1000,
    "RATE_LIMIT_ERROR": 5000,
    "TIMEOUT": 1000,
    "RESOURCE_ERROR": 1000,
}
MAX_LOSSES = 5


class Ended(Exception):
    """The run is over."""


class Cut(Exception):
    """The attempt was interrupted."""


@dataclass(kw_only=True)
class StepNow:
    """One step while the run goes on."""

    declared: Mapping[str, Any]
    position: int
    state: str = "pending"
    attempt: int = 0
    code: str = ""
    output: Any = None
    recovered: bool = False
    error: str = ""  # what its recovery node recovers from
    held_s: float = 0.0  # a backoff that is to be waited for before the next attempt

    @property
    def key(self) -> str:
        """Its name."""
        name: str = self.declared["key"]
        return name

    def outcome(self) -> StepOutcome:
        """Return the current outcome."""
        return StepOutcome(
            state=self.state,
            attempt=self.attempt,
            code=self.code,
            output=self.output,
            recovered=self.recovered,
        )


@dataclass(kw_only=True)
class Model:
    """One run of one blueprint under one script."""

    document: Mapping[str, Any]
    script: Script
    seed: int
    inputs: Mapping[str, Any]
    max_held_s: float  # a longer backoff gives the slot away
    state: str = ""
    code: str = ""
    variables: dict[str, Any] = field(default_factory=dict)
    tokens: Decimal = Decimal()
    calls: list[Call] = field(default_factory=list)
    backoffs: list[tuple[str, float]] = field(default_factory=list)
    parks: list[tuple[str, float]] = field(default_factory=list)
    waits: list[tuple[str, float]] = field(default_factory=list)
    questions: list[tuple[str, str]] = field(default_factory=list)
    contexts: int = 0
    outputs: Any = None
    _open: bool = False  # a context is
    _overdue: bool = False
    _losses: int = 0
    _queued: int = 0

    def __post_init__(self) -> None:
        self._prompter = Prompter(self.script)
        self._steps = [
            StepNow(declared=declared, position=position)
            for position, declared in enumerate(self.document["steps"])
        ]

    def run(self) -> Outcome:
        """Return the result of the run."""
        try:
            self._wait_for_a_slot()
            self._around(self.script.start)
            for step in self._steps:
                self._step(step)
            self._succeed()
        except Ended:
            return self._outcome()

    def _outcome(self) -> Outcome:
        return Outcome(
            state=self.state,
            code=self.code,
            steps={step.key: step.outcome() for step in self._steps},
            outputs=self.outputs,
            variables=self.variables,
            tokens=self.tokens,
            calls=self.calls,
            backoffs=self.backoffs,
            parks=self.parks,
            waits=self.waits,
            questions=self.questions,
            contexts=self.contexts,
        )

    # --- a step
    def _step(self, step: StepNow) -> None:
        """Attempt after attempt until the step has ended; what ends the run raises."""
        while step.state in {"pending", "retrying"}:
            self._claim(step)
            try:
                act, code, output = self._attempt(step)
            except Cut:
                continue
            self._losses = 0
            if act and act.answer and code is None:
                self._ask(step, act, act.answer)
                continue
            if code is None:
                self._succeeded(step, act, output)
            elif code == "SKIPPED":
                step.state = "skipped"
            else:
                self._failed(step, code)
            self._checkpointed(step, act)

    def _claim(self, step: StepNow) -> None:
        if not self._open:
            self._open, self.contexts = True, self.contexts + 1
        if step.held_s and not self._overdue:
            self.waits.append((step.key, step.held_s))
        step.held_s = 0.0
        step.state, step.attempt = "running", step.attempt + 1
        if self._overdue:
            self._end("timed_out", "TIMEOUT", step)

    def _attempt(self, step: StepNow) -> tuple[Act | None, str | None, Any]:
        """The act, if a node was called; the code, if it failed; the output, if it did not."""
        limit = self.document.get("budget", {}).get("tokens")
        try:
            if not step.error and not holds(step.declared.get("when"), self._scope()):
                return None, "SKIPPED", None
            if limit is not None and self.tokens >= Decimal(str(limit)):
                return None, "BUDGET_EXCEEDED", None
            called = step.declared["recover"] if step.error else step.declared
            parameters = resolved(called.get("with", {}), self._scope(step))
        except Unresolvable:
            return None, "POLICY_VIOLATION", None
        return self._called(step, parameters)

    def _called(self, step: StepNow, parameters: Mapping[str, Any]) -> tuple[Act, str | None, Any]:
        node = MEND if step.error else WORK
        seed = derive_seed(self.seed, step.position)
        self.calls.append(Call(step=step.key, node=node, attempt=step.attempt, seed=seed))
        act = self._prompter.next(step.key, node)
        mishap = act.at(Moment.DURING)
        if mishap in CUTS:
            self._cut(step, mishap)
        self.tokens += Decimal(act.cost)
        if mishap is Mishap.CANCEL:
            return act, "CANCELLED", None
        if act.code is not None:
            return act, act.code, None
        return act, None, stored(shown(act, parameters))

    def _succeeded(self, step: StepNow, act: Act | None, output: Any) -> None:
        assert act is not None
        self._has_output(step, output)
        self.variables |= stored(act.variables)

    def _has_output(self, step: StepNow, output: Any) -> None:
        step.state, step.output, step.code = "succeeded", output, step.error
        step.recovered = bool(step.error)

    # --- questions
    def _ask(self, step: StepNow, act: Act, answer: Answer) -> None:
        """The attempt has ended with a question; it is open from when the slot is free."""
        step.state, step.code = "suspended", step.error
        self.variables |= stored(act.variables)
        self._leave(step, ANSWER_S, act)
        if act.at(Moment.PARKED) is Mishap.CANCEL:
            self.questions.append((step.key, "withdrawn"))
            self._cease("cancelled", "CANCELLED")
        self.questions.append((step.key, answer.value))
        if answer is Answer.NOBODY:
            self._failed(step, "TIMEOUT")
        else:
            self._has_output(step, reply_of(answer))
        self._go_on(step)

    def _go_on(self, step: StepNow) -> None:
        """A question has ended: so does a run of which nothing is left, and all others queue, some after a backoff."""
        self._losses = 0
        if step is self._steps[-1] and step.state != "retrying":
            self._succeed()
        if step.held_s > self.max_held_s:
            self.parks.append((step.key, step.held_s))
            step.held_s = 0.0
        self._wait_for_a_slot()

    # --- failures
    def _failed(self, step: StepNow, code: str) -> None:
        if not step.error:
            step.code = code
        if code == "CANCELLED":
            self._end("cancelled", code, step)
        if code == "BUDGET_EXCEEDED":
            self._abort(step, code)
        if step.error:  # with what was to be mended, whatever became of the mending
            self._abort(step, step.error)
        mode = step.declared.get("on_failure", "abort")
        if mode != "retry":
            self._acts_as(step, mode, code)
            return
        retry = step.declared.get("retry", {})
        if code not in BASE_MS or step.attempt >= retry.get("attempts", 3):
            self._acts_as(step, retry.get("then", "abort"), code)
            return
        step.state, step.held_s = "retrying", self._backoff_s(step, BASE_MS[code])
        self.backoffs.append((step.key, step.held_s))

    def _backoff_s(self, step: StepNow, base_ms: int) -> float:
        seed = derive_seed(self.seed, step.position)
        wait_ms = backoff_ms(base_ms, seed=seed, attempt=step.attempt - 1)
        least_ms = base_ms * 2 ** (step.attempt - 1)
        assert least_ms <= wait_ms < least_ms + base_ms
        return wait_ms / 1000

    def _acts_as(self, step: StepNow, mode: str, code: str) -> None:
        if mode == "abort":
            self._abort(step, code)
        elif mode == "continue":
            step.state = "failed"
        else:
            step.state, step.error = "retrying", code

    def _abort(self, step: StepNow, code: str) -> NoReturn:
        self._end("timed_out" if code == "TIMEOUT" else "failed", code, step)

    # --- after a checkpoint
    def _checkpointed(self, step: StepNow, act: Act | None) -> None:
        is_last = step is self._steps[-1] and step.state != "retrying"
        pause_s = act.pause_s if act and step.state == "succeeded" else 0.0
        if is_last and self._outputs() is None:
            self._end("failed", "POLICY_VIOLATION")
        if is_last and not pause_s:
            return  # the outcome is written: nothing that happens from here on changes it
        if step.held_s > self.max_held_s:
            pause_s, step.held_s = step.held_s, 0.0
        if act is None:
            return
        if act.kills:
            self._open = False
        if pause_s:
            self._park(step, pause_s, act, is_last=is_last)
        else:
            self._around(act.afterwards)

    def _leave(self, step: StepNow, seconds: float, act: Act) -> None:
        """Free the slot; the run waits, whichever process ended the placement."""
        self.parks.append((step.key, seconds))
        if act.afterwards in LOSSES:
            self._losses += 1
        elif act.afterwards is not Mishap.DRAINS:
            self._around(act.afterwards)
        self._give_back()

    def _park(self, step: StepNow, seconds: float, act: Act, *, is_last: bool) -> None:
        self._leave(step, seconds, act)
        if act.at(Moment.PARKED) is Mishap.CANCEL:
            self._end("cancelled", "CANCELLED")
        if not is_last:
            self._wait_for_a_slot()

    def _around(self, mishap: Mishap | None) -> None:
        """Something goes wrong while a run is placed and no node runs."""
        if mishap is Mishap.CANCEL:
            self._cease("cancelled", "CANCELLED")
        if mishap is Mishap.OVERDUE:
            self._overdue = True
        if mishap in LOSSES:
            self._count_a_loss()
        if mishap in CUTS:
            self._give_back()
            self._wait_for_a_slot()

    # --- workers
    def _cut(self, step: StepNow, mishap: Mishap | None) -> NoReturn:
        """In the middle of a call: what the step's guarantee says."""
        if mishap in LOSSES:
            self._count_a_loss()
        guarantee = step.declared.get("guarantee", "at_least_once")
        if not step.error and guarantee in {"at_most_once", "best_effort"}:
            self._losses = 0
            self._unknown(step, guarantee)
        else:
            step.attempt -= 1
        self._give_back()
        self._wait_for_a_slot()
        raise Cut

    def _unknown(self, step: StepNow, guarantee: str) -> None:
        step.code = "OUTCOME_UNKNOWN"
        mode = step.declared.get("on_failure", "abort")
        self._acts_as(step, "continue" if guarantee == "best_effort" else mode, step.code)
        if step.state == "failed" and step is self._steps[-1]:
            self._succeed()

    def _count_a_loss(self) -> None:
        self._losses += 1
        if self._losses >= MAX_LOSSES:
            self._cease("failed", "WORKER_LOST")

    def _give_back(self) -> None:
        """The placement is over; what was begun is to be begun again."""
        self._open = False
        for step in self._steps:
            if step.state in {"running", "retrying"}:
                step.state = "pending"

    def _wait_for_a_slot(self) -> None:
        if self._queued == self.script.cancelled_in_queue:
            self._cease("cancelled", "CANCELLED")
        self._queued += 1

    # --- the end
    def _succeed(self) -> NoReturn:
        self.outputs = self._outputs()
        if self.outputs is None:
            self._end("failed", "POLICY_VIOLATION")
        self._end("succeeded", "")

    def _cease(self, state: str, code: str) -> NoReturn:
        """The run ends while no node is at work; so does the step that it was at."""
        for step in self._steps:
            if step.state in {"running", "retrying", "suspended"}:
                self._end(state, code, step, step_code=code)
        self._end(state, code)

    def _end(
        self, state: str, code: str, step: StepNow | None = None, *, step_code: str = ""
    ) -> NoReturn:
        """The run ends, at this step if one is named; what has not run never will."""
        self.state, self.code = state, code
        cancelled = state == "cancelled"
        if step is not None:
            step.state = "cancelled" if cancelled else "failed"
            step.code = step_code or step.error or code
        for other in self._steps:
            if other.state in {"pending", "retrying", "running", "suspended"}:
                other.state = "cancelled" if cancelled else "skipped"
        raise Ended

    def _outputs(self) -> Any:
        """None if they cannot be resolved."""
        try:
            return resolved(self.document.get("outputs", {}), self._scope())
        except Unresolvable:
            return None

    def _scope(self, step: StepNow | None = None) -> dict[str, Any]:
        """Return the names that references may use: for a recovery node also the failure of its step."""
        done = {each.key: each.output for each in self._steps if each.state == "succeeded"}
        scope = {"inputs": stored(self.inputs), "steps": done, "vars": self.variables}
        if step is not None and step.error:
            scope["error"] = {"code": step.error, "step": step.key}
        return scope
