"""A local run over a runtime in memory and a clock that does not wait."""

import threading
from collections.abc import Mapping
from typing import Any

from executions.local.engine import LocalEngine
from executions.local.listener import Clock
from executions.local.run import LocalRun, LocalStep
from executions.semantics.approval_reply import ApprovalReply
from executions.states import StepState
from isolane.limits import RunLimits
from isolane.protocol import Run
from isolane.results import Code, StepResult
from resources.runtimes.base import UNLIMITED, OnFrame
from resources.runtimes.stub import Behaviour, StubBackend, fails, succeeds


class FakeClock(Clock):
    """Time passes when somebody waits."""

    def __init__(self) -> None:
        self.at = 100.0
        self.waited: list[float] = []

    def now(self) -> float:
        return self.at

    def wait(self, seconds: float, cancelled: threading.Event) -> None:
        self.waited.append(seconds)
        self.at += seconds


class Recorder:
    """Keeps the events that a listener receives."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.states: list[str] = []
        self.replies: list[ApprovalReply | None] = []

    def log_line(self, step: str, level: str, message: str) -> None:
        self.lines.append(f"{step} {level} {message}")

    def progress(self, step: str, fraction: float, message: str) -> None:
        self.lines.append(f"{step} {fraction} {message}")

    def error(self, step: str, trace: str) -> None:
        self.lines.append(f"{step} raised {trace}")

    def attempt_finished(self, step: LocalStep) -> None:
        self.states.append(f"{step.path}#{step.attempt} {step.state}")

    def waiting(self, seconds: float) -> None:
        self.states.append("waits")

    def ask(self, step: str, question: str, expires_s: float) -> ApprovalReply | None:
        self.states.append(f"asks {question}")
        return self.replies.pop(0)


class Trial:
    """One local run with all that a test looks at."""

    def __init__(
        self, script: Mapping[str, Behaviour], *steps: dict[str, Any], **more: Any
    ) -> None:
        self.inputs = more.pop("given", {})
        self.document = {
            "name": "flow",
            "steps": [{"key": f"s{number}", **step} for number, step in enumerate(steps)],
            **more,
        }
        self.backend = StubBackend(level="shared", script=script)
        self.clock, self.events, self.cancelled = FakeClock(), Recorder(), threading.Event()

    def run(self, seed: int = 7, limits: RunLimits = UNLIMITED) -> LocalRun:
        return LocalEngine(
            self.document,
            self.inputs,
            backend=self.backend,
            listener=self.events,
            limits=limits,
            seed=seed,
            cancelled=self.cancelled,
            clock=self.clock,
        ).run()

    @property
    def uses(self) -> list[str]:
        return [run.uses for _, run in self.backend.runs]


def echo(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
    """A node that gives its parameters back."""
    return StepResult.succeeded(step=run.step, attempt=run.attempt, output=run.parameters)


def flaky(failures: int, code: Code = Code.TRANSIENT_ERROR) -> Behaviour:
    """A node that fails so often, then succeeds."""
    left = [failures]

    def behave(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
        left[0] -= 1
        behaviour = fails(code) if left[0] >= 0 else succeeds({"attempt": run.attempt})
        return behaviour(run, cancelled, on_frame)

    return behave


def states(run: LocalRun) -> list[StepState]:
    return [step.state for step in run.steps]
