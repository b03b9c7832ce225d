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
# On: with the context. Off: the same work without it. Kept: off, and with one connection for all runs, for ever.
BASELINES = {"plain": ("off",), "query": ("off", "kept"), "sleep": ("off", "kept")}
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
        """Whether its runs open connections that bear their names."""
        return self.chain != "plain" and self.mode == "on"


CONTENDERS = {
    one.name: one
    for one in (Contender(chain, mode) for chain in CHAINS for mode in ("on", *BASELINES[chain]))
}


def turns(rounds: int) -> Iterator[tuple[int, Contender]]:
    """Round and contender: the modes of a chain one after the other, forth and back by turns."""
    for number in range(rounds):
        for chain, baselines in BASELINES.items():
            modes = ("on", *baselines)
            for mode in modes if number % 2 == 0 else reversed(modes):
                yield number, Contender(chain, mode)


def document(contender: Contender, address_file: str, steps: int) -> dict[str, Any]:
    """The blueprint; without the context it declares nothing, and its steps know the address themselves."""
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
