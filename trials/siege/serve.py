"""`python -m trials.siege.serve ROLE`: one process of a siege, which tells what it has seen.

Timing: waits for `go`, then works for the seconds that it was given and ends. Model: sync-over-async. Guarantee:
ends by itself, and at once if the siege is gone before it begins. Failure: bubble, as a trace in the siege's logs.
"""

import asyncio
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from trials.siege import bodies, checks, half_open, plan
from trials.siege.burn import burn
from trials.siege.logins import Guessing
from trials.siege.schemas import cases
from trials.siege.victim import Victim

Work = Callable[[], Awaitable[dict[str, Any]]]
DESCRIPTORS = 8192


async def victim(wanted: Mapping[str, Any]) -> Work:
    """The tenant whose requests are measured."""
    tenant = Victim(wanted["web"], wanted["key"])

    async def work() -> dict[str, Any]:
        return vars(await tenant.work(wanted["seconds"]))

    return work


async def strangers(wanted: Mapping[str, Any]) -> Work:
    """Half-open connections and huge bodies; nobody logs in for that."""

    async def work() -> dict[str, Any]:
        port, seconds = wanted["web"], wanted["seconds"]
        held, sent = await asyncio.gather(
            half_open.hold(port, plan.half_open(), seconds),
            bodies.send(port, plan.bodies(), seconds),
        )
        return {"half-open connections": held.as_dict(), "bodies of 256 MB": sent.as_dict()}

    return work


async def guessers(wanted: Mapping[str, Any]) -> Work:
    """Wrong logins, and an author with the worst schemas."""
    guessing = Guessing(web=wanted["web"], flower=wanted["flower"])
    await guessing.prepare()
    schemas = cases()

    async def work() -> dict[str, Any]:
        seconds = wanted["seconds"]
        guessed, checked = await asyncio.gather(
            guessing.run(seconds),
            checks.check(wanted["web"], wanted["key"], schemas, seconds),
        )
        return {"wrong logins": guessed.as_dict(), "worst-case schemas": checked.as_dict()}

    return work


async def burner(wanted: Mapping[str, Any]) -> Work:
    """Somebody who only uses the processor."""

    async def work() -> dict[str, Any]:
        await asyncio.to_thread(burn, wanted["share"], wanted["seconds"])
        return {}

    return work


ROLES = {"victim": victim, "strangers": strangers, "guessers": guessers, "burner": burner}


def raise_descriptors() -> None:
    """Every connection takes one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = hard == resource.RLIM_INFINITY
    wanted = DESCRIPTORS if unlimited else min(DESCRIPTORS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


async def serve(role: str) -> None:
    """Get ready, wait, work, tell."""
    work = await ROLES[role](json.loads(sys.stdin.readline()))
    _tell("ready")
    if await asyncio.to_thread(sys.stdin.readline) != "go\n":
        return
    used = time.process_time()
    seen = await work()
    _tell(json.dumps({"cpu_s": time.process_time() - used, "seen": seen}))


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise_descriptors()
    asyncio.run(serve(sys.argv[1]))
