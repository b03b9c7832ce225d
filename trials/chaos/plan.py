"""What happens in a chaos, by its seed. Pure: the same seed gives the same blueprints, runs and calamities again."""

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
# What a step's node does, by its name.
WORK = "chaos.work"  # nothing that matters
PAY = "chaos.pay"  # leaves an effect under its idempotency key
SEND = "chaos.send"  # leaves a mark that must not be there
MEND = "chaos.mend"  # recovers
SLEEP = "flow.sleep"
# How long it takes. What may not run again, or only under its key, takes longest, and a few steps are slow: these are
# what a kill cuts in the middle.
MILLISECONDS = {WORK: (10, 80), PAY: (60, 200), SEND: (80, 200), MEND: (10, 80)}
SLOW, SLOW_MS = 0.1, (400, 1200)
# Guarantee: its node, and how often.
GUARANTEES = {
    "at_least_once": (WORK, 5),
    "exactly_once": (PAY, 5),
    "at_most_once": (SEND, 3),
    "best_effort": (SEND, 2),
    "idempotent": (WORK, 2),
    "deterministic": (WORK, 2),
}
ALWAYS = 99  # attempts that fail
FAILS_ONCE, FAILS_ALWAYS, ENDS_ITS_RUN = 0.08, 0.05, 0.003  # of the steps that can
CANCELLED = 0.08  # of the runs, from outside
CANCEL_WITHIN = 4.0  # seconds after they were submitted
SKEW_SECONDS = 3600.0

PERIOD_SECONDS = 2.0
MINUTE = 60.0
SOON = 8.0  # seconds
WORKER_STOPPED = (3.0, 25.0)  # seconds; a lease has 15
CHILD_STOPPED = (1.0, 5.0)
REDIS_AWAY, POSTGRES_AWAY = 3.0, 4.0


class Kind(StrEnum):
    """What may befall a platform."""

    KILL_WORKER = "kill -9 of a worker"
    STOP_WORKER = "SIGSTOP of a worker"
    KILL_CHILD = "kill -9 of a child"
    STOP_CHILD = "SIGSTOP of a child"
    DUPLICATE = "chain sent twice"
    GHOST = "writes under an old epoch"
    FLUSH = "FLUSHALL"
    REDIS = "Redis restart"
    POSTGRES = "PostgreSQL restart"


# How often, one of them every two seconds.
WEIGHTS = {
    Kind.KILL_WORKER: 3,
    Kind.STOP_WORKER: 2,
    Kind.KILL_CHILD: 4,
    Kind.STOP_CHILD: 3,
    Kind.DUPLICATE: 3,
    Kind.GHOST: 3,
}
# Once in each of the four quarters of a minute, in an order by the seed.
OF_SERVERS = {Kind.FLUSH: 0.0, Kind.REDIS: REDIS_AWAY, Kind.POSTGRES: POSTGRES_AWAY}


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run to submit, and when to cancel it if at all."""

    index: int
    tenant: str
    blueprint: str
    seed: int
    cancel_after: float | None


@dataclass(frozen=True, kw_only=True)
class Calamity:
    """What befalls whom, and for how long."""

    at: float  # seconds after the weather has begun
    kind: Kind
    slot: int = 0  # the place among the workers; who is there is its newest worker
    chance: float = 0.0  # which of several, from 0 to 1
    lasts: float = 0.0  # seconds


# --- blueprints
def documents(seed: int, number: int = BLUEPRINTS) -> list[dict[str, Any]]:
    """The blueprints: 20 steps each, of mixed guarantees and failure modes."""
    chance = random.Random(f"documents {seed}")  # noqa: S311 - must repeat
    return [_document(f"chaos-{index}", chance) for index in range(number)]


def _document(name: str, chance: random.Random) -> dict[str, Any]:
    return {
        "name": name,
        "express": chance.random() < EXPRESS,
        "inputs": {
            "type": "object",
            "required": ["judge"],
            "properties": {"judge": {"type": "string"}},
        },
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
        "judge": "${inputs.judge}",
        "ms": chance.randint(*(SLOW_MS if chance.random() < SLOW else MILLISECONDS[node])),
        "fails": _fails(mode, chance),
    }
    if node == SEND:
        # Retried, a step runs again because it has failed, which no guarantee forbids.
        parameters["once"] = mode.get("on_failure") != "retry"
    return {"key": key, "uses": node, "guarantee": guarantee, "with": parameters, **mode}


def _failure_mode(guarantee: str, chance: random.Random) -> dict[str, Any]:
    recover = {
        "uses": MEND,
        "with": {"judge": "${inputs.judge}", "ms": chance.randint(*MILLISECONDS[MEND])},
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
    """How many attempts fail: the first at times where there is another, all of them where the run goes on."""
    goes_on = mode.get("retry", {}).get("then", mode.get("on_failure", "abort"))
    if mode.get("on_failure") == "retry" and chance.random() < FAILS_ONCE:
        return 1
    if goes_on in {"continue", "recover"} and chance.random() < FAILS_ALWAYS:
        return ALWAYS
    return ALWAYS if not mode and chance.random() < ENDS_ITS_RUN else 0


# --- runs
def run(seed: int, index: int, blueprints: Sequence[str]) -> PlannedRun:
    """The run of this number; the tenants take turns."""
    chance = random.Random(f"run {seed} {index}")  # noqa: S311 - must repeat
    return PlannedRun(
        index=index,
        tenant=TENANTS[index % len(TENANTS)],
        blueprint=chance.choice(blueprints),
        seed=chance.getrandbits(62),
        cancel_after=chance.uniform(0, CANCEL_WITHIN) if chance.random() < CANCELLED else None,
    )


# --- weather
def skew(seed: int, number: int) -> float:
    """How many seconds the wall clock of the worker of this number is ahead."""
    chance = random.Random(f"skew {seed} {number}")  # noqa: S311 - must repeat
    return round(chance.uniform(-SKEW_SECONDS, SKEW_SECONDS), 1)


def schedule(seed: int, seconds: float, workers: int) -> list[Calamity]:
    """All calamities in their order; one worker at least is not stopped at any time."""
    chance = random.Random(f"weather {seed}")  # noqa: S311 - must repeat
    stopped_until = [0.0] * workers
    beats = [
        _beat(index * PERIOD_SECONDS, chance, stopped_until)
        for index in range(1, int(seconds / PERIOD_SECONDS))
    ]
    minutes = max(int(seconds / MINUTE), 1)
    of_servers = [
        _struck_well(calamity, beats)
        for minute in range(minutes)
        for calamity in _of_servers(minute * MINUTE, min(seconds, MINUTE), chance)
    ]
    return sorted(beats + of_servers, key=lambda calamity: calamity.at)


def _beat(at: float, chance: random.Random, stopped_until: list[float]) -> Calamity:
    kind = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    slot, which = chance.randrange(len(stopped_until)), chance.random()
    if kind is Kind.STOP_WORKER:
        going = [number for number, until in enumerate(stopped_until) if until <= at]
        if len(going) < 2:
            kind = Kind.KILL_CHILD
        else:
            slot = chance.choice(going)
    lasts = 0.0
    if kind is Kind.STOP_WORKER:
        lasts = round(chance.uniform(*WORKER_STOPPED), 1)
        stopped_until[slot] = at + lasts
    elif kind is Kind.STOP_CHILD:
        lasts = round(chance.uniform(*CHILD_STOPPED), 1)
    elif kind is Kind.KILL_WORKER:
        stopped_until[slot] = 0.0  # its successor goes
    return Calamity(at=at, kind=kind, slot=slot, chance=which, lasts=lasts)


def _struck_well(calamity: Calamity, beats: Sequence[Calamity]) -> Calamity:
    """Messages are in Redis for milliseconds, but wait there for who is stopped: then it is emptied, if one is soon."""
    if calamity.kind is not Kind.FLUSH:
        return calamity
    soon = [
        beat.at + beat.lasts / 2
        for beat in beats
        if beat.kind is Kind.STOP_WORKER and abs(beat.at + beat.lasts / 2 - calamity.at) < SOON
    ]
    return replace(calamity, at=round(soon[0], 1)) if soon else calamity


def _of_servers(begin: float, length: float, chance: random.Random) -> list[Calamity]:
    kinds = [Kind.FLUSH, Kind.FLUSH, Kind.REDIS, Kind.POSTGRES]
    chance.shuffle(kinds)
    quarter = length / len(kinds)
    return [
        Calamity(
            at=round(begin + (number + chance.uniform(0.2, 0.7)) * quarter, 1),
            kind=kind,
            lasts=OF_SERVERS[kind],
        )
        for number, kind in enumerate(kinds)
    ]
