"""The contenders: three chains of ten steps, each with the context and without it. Pure."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from bench.context.nodes import RESOURCE

STEPS = 10
DEFINITION = "shop"
CHAINS = {
    "plain": "no resource",
    "query": "one database, a trivial query per step",
    "sleep": "one database, a query of 20 ms per step",
}
# On: with the context. Off: the same work without it. Kept: off, with one connection that is kept for all runs.
BASELINES = {"plain": ("off",), "query": ("off", "kept"), "sleep": ("off", "kept")}
# The level without a context, in RUNTIMES of bench.context.settings.
OFF_LEVEL = "process"


class Contender(NamedTuple):
    """One chain in one mode."""

    chain: str
    mode: str

    @property
    def name(self) -> str:
        return f"{self.chain}-{self.mode}"

    @property
    def visits(self) -> bool:
        """Return True if its runs open connections that are named by run."""
        return self.chain != "plain" and self.mode == "on"


CONTENDERS = {
    one.name: one
    for one in (Contender(chain, mode) for chain in CHAINS for mode in ("on", *BASELINES[chain]))
}


def turns(rounds: int) -> Iterator[tuple[int, Contender]]:
    """Yield round and contender: the modes of a chain in a row, in reverse order every second round."""
    for number in range(rounds):
        for chain, baselines in BASELINES.items():
            modes = ("on", *baselines)
            for mode in modes if number % 2 == 0 else reversed(modes):
                yield number, Contender(chain, mode)


def document(contender: Contender, address_file: str, steps: int) -> dict[str, Any]:
    """Return the blueprint; without the context it declares no resource, and its steps get the address."""
    links = [
        {"key": f"s{number}", **_step(contender, address_file, number, steps)}
        for number in range(steps)
    ]
    return {"name": f"{contender.name}-{steps}", **_fields(contender), "steps": links}


def _step(contender: Contender, address_file: str, number: int, steps: int) -> dict[str, Any]:
    if contender.chain == "plain":
        return {"uses": "data.map", "with": {"values": {}}}
    slow = {"slow": contender.chain == "sleep"}
    if contender.mode == "on":
        return {"uses": "bench.scoped", "with": slow}
    legacy = {**slow, "address_file": address_file}
    if contender.mode == "kept":
        return {"uses": "bench.kept", "with": legacy}
    ends = {"is_first": number == 0, "is_last": number == steps - 1}
    return {"uses": "bench.by_hand", "with": {**legacy, **ends}}


def _fields(contender: Contender) -> dict[str, Any]:
    if contender.mode != "on":
        return {"isolation": OFF_LEVEL}
    if contender.chain == "plain":
        return {}
    declared = {"type": "database", "definition": DEFINITION, "scope": "execution"}
    return {"resources": {RESOURCE: declared}}
