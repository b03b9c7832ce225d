"""Nodes of an attacker, and of its neighbour."""

import time
from pathlib import Path
from typing import Any

from isolane import NodeContext, node
from tests.integration.resources.runtimes.process.attacks import ATTACKS
from tests.integration.resources.runtimes.process.probes import PROBES, outcome


@node("hostile.probe")
def probe(ctx: NodeContext, *, names: list[str], facts: dict[str, Any]) -> dict[str, str]:
    """Try to leave in all of these ways."""
    return {name: outcome(PROBES[name], facts) for name in names}


@node("hostile.attack")
def attack(ctx: NodeContext, *, name: str) -> Any:
    """Attack in one way."""
    return ATTACKS[name]()


@node("hostile.descriptors")
def descriptors(ctx: NodeContext) -> list[str]:
    """Return the targets of all descriptors that the runner has."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(link.readlink()))
        except FileNotFoundError:  # that of the listing
            continue
    return sorted(found)


@node("hostile.change_own_program")
def change_own_program(ctx: NodeContext) -> str:
    """Let everybody run the file of this process's program as its owner; return which file that is."""
    own = Path("/proc/self/exe")
    own.chmod(0o4755)
    return str(own.readlink())


@node("hostile.neighbour")
def neighbour(ctx: NodeContext, *, token: str) -> dict[str, Any]:
    """Work until it is cancelled, then return what is left of what it had."""
    kept = Path("/tmp/token")
    kept.write_text(token)
    beats = 0
    while not ctx.cancelled:
        beats += 1
        time.sleep(0.01)
    processes = [path for path in Path("/proc").iterdir() if path.name.isdecimal()]
    return {"beats": beats, "token": kept.read_text(), "processes": len(processes)}
