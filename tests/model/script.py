"""The script of one run: how each call of a node ends, and what goes wrong around it. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

WORK = "work"  # the node of every step
MEND = "mend"  # the node of every recovery
ANSWER_S = 3600.0  # for which every question is open


class Mishap(Enum):
    """A disturbance."""

    DIES = auto()  # the worker's process is gone
    LAPSES = (
        auto()
    )  # the worker is taken for lost, and goes on all the same until the fence refuses it
    DRAINS = auto()  # the worker is told to stop; within a call: its grace is over
    CANCEL = auto()  # somebody cancels; within a call: the node obeys
    CANCEL_LATE = auto()  # the same, but the node ends as it would have ended
    OVERDUE = auto()  # the run has used up its time
    MESSAGE_LOST = auto()  # what would wake the next link is lost


LOSSES = frozenset({Mishap.DIES, Mishap.LAPSES})
CUTS = LOSSES | {Mishap.DRAINS}


class Moment(Enum):
    """The moment of a disturbance."""

    DURING = auto()  # while the node runs
    AFTER = auto()  # right after the checkpoint of the attempt
    PARKED = auto()  # while the run waits without a slot, for a time or a person, if it does


class Answer(Enum):
    """A person's answer; the value is the final state of the question."""

    APPROVE = "approved"
    REJECT = "rejected"
    NOBODY = "expired"


@dataclass(frozen=True, kw_only=True)
class Act:
    """The behaviour of one call of a node."""

    code: str | None = None  # of its failure
    ok: Any = True  # in its output, if it succeeds
    variables: Mapping[str, Any] = field(default_factory=dict)  # that it sets, if it succeeds
    pause_s: float = 0.0  # that it asks for, if it succeeds
    answer: Answer | None = None  # to what it asks a person instead of succeeding by itself
    cost: str = "0"  # in tokens
    kills: bool = False  # its runtime is dead afterwards
    mishap: Mishap | None = None
    moment: Moment = Moment.DURING

    def at(self, moment: Moment) -> Mishap | None:
        """Return the disturbance at this moment."""
        return self.mishap if self.moment is moment else None

    @property
    def afterwards(self) -> Mishap | None:
        """Return what follows the step's checkpoint; a cancellation that the node ignored is one such thing."""
        if self.mishap is Mishap.CANCEL_LATE:
            return Mishap.CANCEL
        return self.at(Moment.AFTER)


@dataclass(frozen=True, kw_only=True)
class Script:
    """Calls come in the order in which a runtime is asked; what is not scripted succeeds."""

    calls: Mapping[tuple[str, str], tuple[Act, ...]]  # by step and node
    start: Mishap | None = None  # once the run is placed, before anything is claimed
    cancelled_in_queue: int | None = None  # the how-manieth time that it waits for a slot
    window: int = 10  # links in a chain
    twice: bool = False  # every message is delivered twice
    stranger: bool = False  # another tenant tries to answer first


class Prompter:
    """Gives out the acts in order."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._given: dict[tuple[str, str], int] = {}

    def next(self, step: str, node: str) -> Act:
        """Return the behaviour of this call."""
        number = self._given.get((step, node), 0)
        self._given[step, node] = number + 1
        acts = self._script.calls.get((step, node), ())
        return acts[number] if number < len(acts) else Act()


def output_of(act: Act, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the output of a successful call: it shows its parameters."""
    return {"ok": act.ok, "given": dict(parameters)}


def reply_of(answer: Answer) -> dict[str, Any]:
    """Return a person's answer, which is the output of the asking step."""
    approved = answer is Answer.APPROVE
    return {"approved": approved, "by": "ann", "comment": "" if approved else "not yet"}
