"""The plan of a chaos trial: the same seed gives the same blueprints, runs and faults. Pure."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

TENANTS = ("acme", "globex")
BLUEPRINTS = 16
STEPS = 20
EXPRESS = 0.3  # of the blueprints
SLEEPS = 0.04  # of the steps
SLEEP_SECONDS = (0.1, 1.0)
# Nodes.
WORK = "chaos.work"  # takes time
PAY = "chaos.pay"  # leaves an effect under its idempotency key
SEND = "chaos.send"  # leaves a mark that must not exist yet
RECOVER = "chaos.recover"  # the recovery node
SLEEP = "flow.sleep"
OBSERVER = "observer"  # the resource by which steps reach it, its definition and secret
# Duration of a step. Steps that may not repeat, or only under their key, take longest, and a few steps are slow:
# a kill is to interrupt these.
MILLISECONDS = {WORK: (10, 80), PAY: (60, 200), SEND: (80, 200), RECOVER: (10, 80)}
SLOW, SLOW_MS = 0.1, (400, 1200)
# Node and weight of each guarantee.
GUARANTEES = {
    "at_least_once": (WORK, 5),
    "exactly_once": (PAY, 5),
    "at_most_once": (SEND, 3),
    "best_effort": (SEND, 2),
    "idempotent": (WORK, 2),
    "deterministic": (WORK, 2),
}
ALWAYS = 99  # failing attempts
FAILS_ONCE, FAILS_ALWAYS, ENDS_ITS_RUN = 0.08, 0.05, 0.003  # of the steps that can
CANCELLED = 0.08  # of the runs, from outside
CANCEL_WITHIN = 4.0  # seconds after they were submitted
SKEW_SECONDS = 3600.0

PERIOD_SECONDS = 2.0
MINUTE = 60.0
NEAR = 8.0  # seconds
WORKER_STOPPED = (3.0, 25.0)  # seconds; a lease takes 15
CHILD_STOPPED = (1.0, 5.0)
REDIS_DOWN, POSTGRES_DOWN = 3.0, 4.0


class FaultKind(StrEnum):
    """Kinds of faults."""

    KILL_WORKER = "kill -9 of a worker"
    STOP_WORKER = "SIGSTOP of a worker"
    KILL_CHILD = "kill -9 of a child"
    STOP_CHILD = "SIGSTOP of a child"
    DUPLICATE = "chain sent twice"
    STALE_WRITE = "writes under an old epoch"
    FLUSH = "FLUSHALL"
    REDIS = "Redis restart"
    POSTGRES = "PostgreSQL restart"


# Every two seconds one of these, by weight.
WEIGHTS = {
    FaultKind.KILL_WORKER: 3,
    FaultKind.STOP_WORKER: 2,
    FaultKind.KILL_CHILD: 4,
    FaultKind.STOP_CHILD: 3,
    FaultKind.DUPLICATE: 3,
    FaultKind.STALE_WRITE: 3,
}
# Seconds of outage. In each quarter of a minute there is one of these, in an order that the seed gives.
SERVER_FAULTS = {
    FaultKind.FLUSH: 0.0,
    FaultKind.REDIS: REDIS_DOWN,
    FaultKind.POSTGRES: POSTGRES_DOWN,
}


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run to submit, and when to cancel it if at all."""

    index: int
    tenant: str
    blueprint: str
    seed: int
    cancel_after: float | None


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault: kind, target, time and length."""

    at: float  # seconds after the injection began
    kind: FaultKind
    slot: int = 0  # the newest worker of this slot
    pick: float = 0.0  # from 0 to 1: one of several targets
    lasts: float = 0.0  # seconds


# --- blueprints
def documents(seed: int, number: int = BLUEPRINTS) -> list[dict[str, Any]]:
    """Return blueprints of 20 steps each, with all guarantees and failure modes."""
    chance = random.Random(f"documents {seed}")  # noqa: S311 - must repeat
    return [_document(f"chaos-{index}", chance) for index in range(number)]


def _document(name: str, chance: random.Random) -> dict[str, Any]:
    return {
        "name": name,
        "express": chance.random() < EXPRESS,
        "resources": {OBSERVER: {"type": "database", "definition": OBSERVER, "scope": "execution"}},
        "steps": [_step(f"s{number:02}", chance) for number in range(1, STEPS + 1)],
    }


def _step(key: str, chance: random.Random) -> dict[str, Any]:
    if chance.random() < SLEEPS:
        return {
            "key": key,
            "uses": SLEEP,
            "with": {"seconds": round(chance.uniform(*SLEEP_SECONDS), 2)},
        }
    guarantee = chance.choices(list(GUARANTEES), [often for _, often in GUARANTEES.values()])[0]
    node, _ = GUARANTEES[guarantee]
    mode = _failure_mode(guarantee, chance)
    parameters: dict[str, Any] = {
        "ms": chance.randint(*(SLOW_MS if chance.random() < SLOW else MILLISECONDS[node])),
        "fails": _fails(mode, chance),
    }
    if node == SEND:
        # A retry after a failure is allowed under every guarantee.
        parameters["once"] = mode.get("on_failure") != "retry"
    return {"key": key, "uses": node, "guarantee": guarantee, "with": parameters, **mode}


def _failure_mode(guarantee: str, chance: random.Random) -> dict[str, Any]:
    recover = {
        "uses": RECOVER,
        "with": {"ms": chance.randint(*MILLISECONDS[RECOVER])},
    }
    modes: list[dict[str, Any]] = [
        {},
        {},
        {},
        {"on_failure": "continue"},
        {"on_failure": "recover", "recover": recover},
    ]
    if guarantee != "at_most_once":
        modes += [
            {"on_failure": "retry"},
            {"on_failure": "retry", "retry": {"attempts": 2, "then": "continue"}},
            {
                "on_failure": "retry",
                "retry": {"attempts": 2, "then": "recover"},
                "recover": recover,
            },
        ]
    return chance.choice(modes)


def _fails(mode: dict[str, Any], chance: random.Random) -> int:
    """Return how many attempts fail: one if the step is retried, all if the run continues after it."""
    continues = mode.get("retry", {}).get("then", mode.get("on_failure", "abort"))
    if mode.get("on_failure") == "retry" and chance.random() < FAILS_ONCE:
        return 1
    if continues in {"continue", "recover"} and chance.random() < FAILS_ALWAYS:
        return ALWAYS
    return ALWAYS if not mode and chance.random() < ENDS_ITS_RUN else 0


# --- runs
def run(seed: int, index: int, blueprints: Sequence[str]) -> PlannedRun:
    """Return the run of this number; the tenants take turns."""
    chance = random.Random(f"run {seed} {index}")  # noqa: S311 - must repeat
    return PlannedRun(
        index=index,
        tenant=TENANTS[index % len(TENANTS)],
        blueprint=chance.choice(blueprints),
        seed=chance.getrandbits(62),
        cancel_after=chance.uniform(0, CANCEL_WITHIN) if chance.random() < CANCELLED else None,
    )


# --- faults
def skew(seed: int, number: int) -> float:
    """Return how many seconds the wall clock of this worker is ahead."""
    chance = random.Random(f"skew {seed} {number}")  # noqa: S311 - must repeat
    return round(chance.uniform(-SKEW_SECONDS, SKEW_SECONDS), 1)


def schedule(seed: int, seconds: float, workers: int) -> list[Fault]:
    """Return all faults in order; at any time at least one worker is not stopped."""
    # Another prefix would give every known seed another schedule.
    chance = random.Random(f"weather {seed}")  # noqa: S311 - must repeat
    stopped_until = [0.0] * workers
    regular = [
        _regular_fault(index * PERIOD_SECONDS, chance, stopped_until)
        for index in range(1, int(seconds / PERIOD_SECONDS))
    ]
    minutes = max(int(seconds / MINUTE), 1)
    of_servers = [
        _aligned(fault, regular)
        for minute in range(minutes)
        for fault in _server_faults(minute * MINUTE, min(seconds, MINUTE), chance)
    ]
    return sorted(regular + of_servers, key=lambda fault: fault.at)


def _regular_fault(at: float, chance: random.Random, stopped_until: list[float]) -> Fault:
    kind = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    slot, pick = chance.randrange(len(stopped_until)), chance.random()
    if kind is FaultKind.STOP_WORKER:
        going = [number for number, until in enumerate(stopped_until) if until <= at]
        if len(going) < 2:
            kind = FaultKind.KILL_CHILD
        else:
            slot = chance.choice(going)
    lasts = 0.0
    if kind is FaultKind.STOP_WORKER:
        lasts = round(chance.uniform(*WORKER_STOPPED), 1)
        stopped_until[slot] = at + lasts
    elif kind is FaultKind.STOP_CHILD:
        lasts = round(chance.uniform(*CHILD_STOPPED), 1)
    elif kind is FaultKind.KILL_WORKER:
        stopped_until[slot] = 0.0  # its successor runs
    return Fault(at=at, kind=kind, slot=slot, pick=pick, lasts=lasts)


def _aligned(fault: Fault, regular: Sequence[Fault]) -> Fault:
    """Move a FLUSHALL into the pause of a worker, if one is near: else messages stay in Redis for milliseconds only."""
    if fault.kind is not FaultKind.FLUSH:
        return fault
    near = [
        one.at + one.lasts / 2
        for one in regular
        if one.kind is FaultKind.STOP_WORKER and abs(one.at + one.lasts / 2 - fault.at) < NEAR
    ]
    return replace(fault, at=round(near[0], 1)) if near else fault


def _server_faults(begin: float, length: float, chance: random.Random) -> list[Fault]:
    kinds = [FaultKind.FLUSH, FaultKind.FLUSH, FaultKind.REDIS, FaultKind.POSTGRES]
    chance.shuffle(kinds)
    quarter = length / len(kinds)
    return [
        Fault(
            at=round(begin + (number + chance.uniform(0.2, 0.7)) * quarter, 1),
            kind=kind,
            lasts=SERVER_FAULTS[kind],
        )
        for number, kind in enumerate(kinds)
    ]
