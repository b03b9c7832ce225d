"""A blueprint as values that workers read: its steps in order, and what a failure of each does. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Any

from executions.blueprints import durations
from foundation.limit_bounds import LIMIT_BOUNDS
from isolane.limits import RunLimits

DEFAULT_STEP_TIMEOUT = "30s"
DEFAULT_RUN_TIMEOUT = "30m"
DEFAULT_ATTEMPTS = 3  # of a retried step, including the first
WHOLE = "*"  # in a step's sensitive fields: all of its output
_CACHED_PLANS = 256


class FailureMode(StrEnum):
    """The effect of a step's failure. The fifth mode, bubble, is for errors of a request; no step can ask for it."""

    ABORT = "abort"  # the run ends
    CONTINUE = "continue"  # the failure is recorded, the next step runs
    RETRY = "retry"  # again after a backoff, then the step's `then` mode
    RECOVER = "recover"  # a named node takes the step's place


class Guarantee(StrEnum):
    """The promise to a step's author for an interrupted run."""

    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"
    EXACTLY_ONCE = "exactly_once"
    BEST_EFFORT = "best_effort"
    IDEMPOTENT = "idempotent"
    DETERMINISTIC = "deterministic"


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovery:
    """The node that takes the place of a failed step."""

    uses: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedStep:
    """One step as the blueprint declares it."""

    position: int
    path: str
    uses: str
    parameters: Mapping[str, Any]
    timeout_s: float
    when: str | None = None
    on_failure: FailureMode = FailureMode.ABORT
    attempts: int = 1
    then: FailureMode = FailureMode.ABORT
    recover: Recovery | None = None
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    idempotency_key: str | None = None
    sensitive: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredResource:
    """A resource that the steps may ask for."""

    name: str
    type: str
    definition: str
    scope: str | None = None  # the definition's if None
    eager: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """One blueprint version; immutable, since runs of the same content share it."""

    name: str
    steps: tuple[PlannedStep, ...]
    timeout_s: float = 1800.0
    express: bool = False
    isolation: str | None = None
    outputs: Mapping[str, Any] = field(default_factory=dict)
    budget: Mapping[str, Decimal] = field(default_factory=dict)
    limits: RunLimits = field(
        default_factory=RunLimits
    )  # that it asks for; the tenant's may be stricter
    labels: Mapping[str, str] = field(default_factory=dict)
    sensitive_inputs: frozenset[str] = frozenset()
    resources: tuple[DeclaredResource, ...] = ()
    _by_path: Mapping[str, PlannedStep] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_path", {step.path: step for step in self.steps})

    @property
    def has_sensitive(self) -> bool:
        """True if any value of a run must be encrypted and masked."""
        return bool(self.sensitive_inputs) or any(step.sensitive for step in self.steps)

    def step(self, path: str) -> PlannedStep:
        """Return the step at a path."""
        return self._by_path[path]

    def after(self, path: str) -> str:
        """Return the path of the next step; empty at the end."""
        position = self._by_path[path].position + 1
        return self.steps[position].path if position < len(self.steps) else ""

    def from_path(self, path: str) -> tuple[PlannedStep, ...]:
        """Return this step and all that follow."""
        return self.steps[self._by_path[path].position :]


@dataclass(frozen=True, slots=True)
class _Content:
    """A document, equal to every other with its hash."""

    content_hash: str
    document: Mapping[str, Any] = field(compare=False)


def plan_of(content_hash: str, content: Mapping[str, Any]) -> Plan:
    """Return the plan of a published version, read once per process: equal content has the same plan."""
    return _remembered(_Content(content_hash, content))


@lru_cache(maxsize=_CACHED_PLANS)
def _remembered(content: _Content) -> Plan:
    return plan(content.document)


def plan(document: Mapping[str, Any]) -> Plan:
    """Return the plan of a document."""
    return Plan(
        name=document["name"],
        steps=tuple(_step(position, step) for position, step in enumerate(document["steps"])),
        timeout_s=durations.seconds(
            document.get("timeout", DEFAULT_RUN_TIMEOUT), durations.RUN, "$.timeout"
        ),
        express=document.get("express", False),
        isolation=document.get("isolation"),
        outputs=document.get("outputs", {}),
        budget={kind: Decimal(str(most)) for kind, most in document.get("budget", {}).items()},
        limits=_limits(document.get("limits", {})),
        labels=document.get("labels", {}),
        sensitive_inputs=sensitive_inputs(document.get("inputs", {})),
        resources=tuple(
            DeclaredResource(name=name, **declared)
            for name, declared in sorted(document.get("resources", {}).items())
        ),
    )


def _limits(written: Mapping[str, float]) -> RunLimits:
    """Return the limits; JSON Schema takes 256.0 for an integer, too."""
    read: dict[str, Any] = {
        name: int(most) if LIMIT_BOUNDS[name].whole else float(most)
        for name, most in written.items()
    }
    return RunLimits(**read)


def _step(position: int, step: Mapping[str, Any]) -> PlannedStep:
    on_failure = FailureMode(step.get("on_failure", FailureMode.ABORT))
    retry = step.get("retry", {})
    retried = on_failure is FailureMode.RETRY
    return PlannedStep(
        position=position,
        path=step["key"],
        uses=step["uses"],
        parameters=step.get("with", {}),
        timeout_s=durations.seconds(
            step.get("timeout", DEFAULT_STEP_TIMEOUT),
            durations.STEP,
            f"$.steps[{position}].timeout",
        ),
        when=step.get("when"),
        on_failure=on_failure,
        attempts=retry.get("attempts", DEFAULT_ATTEMPTS) if retried else 1,
        then=FailureMode(retry.get("then", FailureMode.ABORT)),
        recover=_recovery(step.get("recover")),
        guarantee=Guarantee(step.get("guarantee", Guarantee.AT_LEAST_ONCE)),
        idempotency_key=step.get("idempotency_key"),
        sensitive=_sensitive(step.get("sensitive", [])),
    )


def _recovery(recover: Mapping[str, Any] | None) -> Recovery | None:
    if recover is None:
        return None
    return Recovery(uses=recover["uses"], parameters=recover.get("with", {}))


def _sensitive(marked: Any) -> frozenset[str]:
    return frozenset({WHOLE}) if marked is True else frozenset(marked or ())


def sensitive_inputs(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the inputs that a schema marks."""
    properties = schema.get("properties", {})
    return frozenset(
        name
        for name, described in properties.items()
        if isinstance(described, dict) and described.get("sensitive") is True
    )
