"""The size of each attack and the length of each phase. Pure."""

from dataclasses import dataclass
from itertools import cycle, islice

ADDRESS = "127.0.0.1"
VICTIM, ATTACKER = "victim", "attacker"
# Source addresses of wrong logins; the victim's own address is one of them.
SOURCES = (ADDRESS, *(f"127.0.1.{number}" for number in range(1, 50)))

HALF_OPEN = 1200  # connections
BODIES = 50  # at once
BODY_BYTES = 256 * 1024 * 1024
LOGINS_PER_SECOND = 500
SCHEMAS = 30  # at once
RENEWAL_SECONDS = 1.0  # until an attack that the server has ended begins again

SHORTEST_SECONDS = 8.0  # of idle and control; enough requests for a p95
CONTROL_PART = 1 / 3  # of the length of the attack

HALF_OPEN_KINDS = ("header stops", "body stops", "header drips", "body drips")
BODY_PATHS = ("/healthz", "/login/", "/api/v1/executions", "/nope")
# Targets of ten tries.
LOGIN_SHARES = {"login": 3, "admin": 3, "api key": 2, "flower": 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class Phases:
    """Length of each phase in seconds."""

    idle: float
    attack: float
    control: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """A request body that is sent again and again."""

    path: str
    chunked: bool


def phases(attack: float) -> Phases:
    """Return the phases for an attack of this length; idle and control are shorter."""
    beside = max(SHORTEST_SECONDS, attack * CONTROL_PART)
    return Phases(idle=beside, attack=attack, control=beside)


def half_open(number: int = HALF_OPEN) -> list[str]:
    """Return the kind of each connection; all kinds are equally frequent."""
    return list(islice(cycle(HALF_OPEN_KINDS), number))


def bodies(number: int = BODIES) -> list[Body]:
    """Return bodies for every path, with a length and in chunks."""
    kinds = [Body(path=path, chunked=chunked) for chunked in (True, False) for path in BODY_PATHS]
    return list(islice(cycle(kinds), number))


def logins() -> list[str]:
    """Return the kinds of tries in turn, evenly mixed."""
    slots = [
        ((turn + 0.5) / share, kind)
        for kind, share in LOGIN_SHARES.items()
        for turn in range(share)
    ]
    return [kind for _, kind in sorted(slots)]


def due(elapsed: float, rate: float = LOGINS_PER_SECOND) -> int:
    """Return how many tries should have begun after these seconds."""
    return int(elapsed * rate)
