"""The levels under contract: how each is built, and which clauses it does not promise.

Another level is one more entry. A clause that a level is exempted from must fail there: else the exemption is idle.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from resources.runtimes.base import RuntimeBackend
from resources.runtimes.process import ProcessBackend
from resources.runtimes.shared import SharedBackend


class Clause(StrEnum):
    """A promise that not every level makes."""

    FILES = "sees no files of other runs"
    PROCESSES = "sees no processes of other runs"
    MODULES = "sees no module state of an earlier run of its tenant"
    NETWORK = "reaches no network"
    LIMITS = "cannot exceed its limits"


class Level(NamedTuple):
    """A level, as its tests need it."""

    build: Callable[..., RuntimeBackend]
    exempt: frozenset[Clause] = frozenset()


LEVELS = {
    "shared": Level(SharedBackend, exempt=frozenset(Clause)),
    "process": Level(ProcessBackend),
}
