"""The result of a run, as far as the semantics promise it. Predicted by the model, observed in the database."""

from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, kw_only=True)
class StepOutcome:
    """The final state of one step."""

    state: str
    attempt: int
    code: str
    output: Any
    recovered: bool


@dataclass(frozen=True, kw_only=True)
class Call:
    """One time that a runtime was asked."""

    step: str
    node: str
    attempt: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The final state of one run, and its history."""

    state: str
    code: str
    steps: dict[str, StepOutcome]
    outputs: Any  # of a run that has succeeded
    variables: dict[str, Any]
    tokens: Decimal
    calls: list[Call]
    backoffs: list[tuple[str, float]]
    parks: list[tuple[str, float]]  # for how long it gave its slot away, and after which step
    waits: list[tuple[str, float]]  # the backoffs that were waited for with the slot held
    questions: list[tuple[str, str]]  # that came to be open: of which step, and what became of them
    contexts: int  # that were opened


def differences(seen: Outcome, told: Outcome) -> dict[str, tuple[Any, Any]]:
    """Return the fields that differ, with both values."""
    ours, theirs = _flat(seen), _flat(told)
    return {
        name: (ours.get(name), theirs.get(name))
        for name in ours | theirs
        if ours.get(name) != theirs.get(name)
    }


def _flat(outcome: Outcome) -> dict[str, Any]:
    flat = asdict(outcome)
    steps = flat.pop("steps")
    return flat | {f"{key}.{name}": step[name] for key, step in steps.items() for name in step}
