"""What is compared: three chains of ten steps, each with the context and without. Pure."""

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
MODES = ("on", "off")
# How RUNTIMES of bench.context.settings names the runners without a context.
OFF_LEVEL = "process"


class Contender(NamedTuple):
    """One chain in one mode; the name is its driver's."""

    chain: str
    mode: str

    @property
    def name(self) -> str:
        return f"{self.chain}-{self.mode}"

    @property
    def visits(self) -> bool:
        """Whether each of its runs opens a connection."""
        return self.chain != "plain" and self.mode == "on"


CONTENDERS = {
    one.name: one for one in (Contender(chain, mode) for chain in CHAINS for mode in MODES)
}


def turns(rounds: int) -> Iterator[tuple[int, Contender]]:
    """Round and contender: both modes of a chain one after the other, the first of them by turns."""
    for number in range(rounds):
        for chain in CHAINS:
            for mode in MODES if number % 2 == 0 else reversed(MODES):
                yield number, Contender(chain, mode)


def document(contender: Contender, address_file: str, steps: int) -> dict[str, Any]:
    """The blueprint; without the context it declares nothing, and its steps know the address themselves."""
    step = _step(contender, address_file)
    links = [{"key": f"s{number}", **step} for number in range(steps)]
    return {"name": f"{contender.name}-{steps}", **_fields(contender), "steps": links}


def _step(contender: Contender, address_file: str) -> dict[str, Any]:
    if contender.chain == "plain":
        return {"uses": "data.map", "with": {"values": {}}}
    slow = {"slow": contender.chain == "sleep"}
    if contender.mode == "on":
        return {"uses": "bench.scoped", "with": slow}
    return {"uses": "bench.global", "with": {**slow, "address_file": address_file}}


def _fields(contender: Contender) -> dict[str, Any]:
    if contender.mode == "off":
        return {"isolation": OFF_LEVEL}
    if contender.chain == "plain":
        return {}
    declared = {"type": "database", "definition": DEFINITION, "scope": "execution"}
    return {"resources": {RESOURCE: declared}}
