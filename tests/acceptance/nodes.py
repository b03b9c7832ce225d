"""Nodes for runs whose failures are the point."""

import os
import time
from pathlib import Path
from typing import Any

from isolane import NodeContext, StepError, node


@node("trial.flaky")
def flaky(ctx: NodeContext, *, until: int) -> dict[str, int]:
    """Work from a certain attempt on."""
    if ctx.attempt < until:
        raise StepError("TRANSIENT_ERROR", f"attempt {ctx.attempt} is too early")
    return {"attempt": ctx.attempt}


@node("trial.fail")
def fail(ctx: NodeContext, *, code: str) -> None:
    """Fail."""
    raise StepError(code, "as asked")


@node("trial.rescue")
def rescue(ctx: NodeContext, *, why: str) -> dict[str, str]:
    """Take the place of what failed."""
    return {"instead": why}


@node("trial.hang_once")
def hang_once(ctx: NodeContext) -> int:
    """Do not return at the first attempt; return the process of a later one."""
    if ctx.attempt == 1:
        time.sleep(60)
    return os.getpid()


@node("trial.speak_and_wait")
def speak_and_wait(ctx: NodeContext, *, file: str) -> None:
    """Say something, then go on when the file is there."""
    print("begun")  # noqa: T201 - lands in the step's log
    ctx.progress(0.5, "half")
    while not Path(file).exists():
        time.sleep(0.02)
    ctx.log("ended")


@node("trial.note_and_wait")
def note_and_wait(ctx: NodeContext, *, notes: str, until: str) -> None:
    """Note that this run's step has begun, then go on when the file is there."""
    with Path(notes).open("a") as file:
        file.write(f"{ctx.execution_id} {ctx.step}\n")
    while not Path(until).exists():
        time.sleep(0.02)


@node("trial.login")
def login(ctx: NodeContext, *, password: str) -> dict[str, Any]:
    """Get a token for a password, and talk too much."""
    token = password[::-1]
    print(f"{password} gave {token}")  # noqa: T201 - lands in the step's log
    ctx.memory["session"] = token
    return {"token": token}


@node("trial.use")
def use(ctx: NodeContext, *, token: str, session: str) -> None:
    """Break with all that it knows in the message."""
    raise StepError("UNKNOWN_ERROR", f"refused: {token} {session}")


@node("trial.explode")
def explode(ctx: NodeContext, *, token: str) -> None:
    """Break unexpectedly, with what it knows in the exception."""
    raise ValueError(token)
