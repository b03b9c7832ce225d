"""`python -m trials.siege.serve ROLE`: one process of a siege, which reports its figures on standard output.

Timing: waits for `go`, works for the given seconds, then ends.
Model: sync-over-async.
Guarantee: ends by itself, and at once if the siege ends before `go`.
Failure: bubble, as a traceback in the logs of the siege.
"""

import asyncio
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from trials.siege import bodies, half_open, plan, validation
from trials.siege.burn import burn
from trials.siege.logins import Guessing
from trials.siege.schemas import expensive
from trials.siege.victim import Victim

Work = Callable[[], Awaitable[dict[str, Any]]]
DESCRIPTORS = 8192


async def victim(task: Mapping[str, Any]) -> Work:
    """Prepare the tenant whose requests are measured."""
    tenant = Victim(task["web"], task["key"])

    async def work() -> dict[str, Any]:
        return vars(await tenant.work(task["seconds"]))

    return work


async def strangers(task: Mapping[str, Any]) -> Work:
    """Prepare the attacks without a login: half-open connections and huge bodies."""

    async def work() -> dict[str, Any]:
        port, seconds = task["web"], task["seconds"]
        held, sent = await asyncio.gather(
            half_open.hold(port, plan.half_open(), seconds),
            bodies.send(port, plan.bodies(), seconds),
        )
        return {"half-open connections": held.as_dict(), "bodies of 256 MB": sent.as_dict()}

    return work


async def guessers(task: Mapping[str, Any]) -> Work:
    """Prepare wrong logins, and an author with expensive schemas."""
    guessing = Guessing(web=task["web"], flower=task["flower"])
    await guessing.prepare()
    schemas = expensive()

    async def work() -> dict[str, Any]:
        seconds = task["seconds"]
        guessed, validated = await asyncio.gather(
            guessing.run(seconds),
            validation.send(task["web"], task["key"], schemas, seconds),
        )
        return {"wrong logins": guessed.as_dict(), "worst-case schemas": validated.as_dict()}

    return work


async def burner(task: Mapping[str, Any]) -> Work:
    """Prepare the control, which only uses CPU time."""

    async def work() -> dict[str, Any]:
        await asyncio.to_thread(burn, task["share"], task["seconds"])
        return {}

    return work


ROLES = {"victim": victim, "strangers": strangers, "guessers": guessers, "burner": burner}


def raise_descriptors() -> None:
    """Raise the limit of descriptors: each connection takes one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = hard == resource.RLIM_INFINITY
    wanted = DESCRIPTORS if unlimited else min(DESCRIPTORS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


async def serve(role: str) -> None:
    """Prepare the role, wait for `go`, work, and write the result."""
    work = await ROLES[role](json.loads(sys.stdin.readline()))
    _send("ready")
    if await asyncio.to_thread(sys.stdin.readline) != "go\n":
        return
    used = time.process_time()
    seen = await work()
    _send(json.dumps({"cpu_s": time.process_time() - used, "seen": seen}))


def _send(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise_descriptors()
    asyncio.run(serve(sys.argv[1]))
