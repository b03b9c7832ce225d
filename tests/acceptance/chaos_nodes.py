"""Steps that tell a judge outside of the platform that they began and what they did."""

import os
import time
from collections.abc import Callable
from typing import Any

import psycopg

from isolane import NodeContext, StepError, node

Court = psycopg.Connection[tuple[Any, ...]]
CONNECT_SECONDS = 10


@node("chaos.work", idempotent=True, deterministic=True)
def work(ctx: NodeContext, *, judge: str, ms: int, fails: int = 0) -> dict[str, Any]:
    """Take some time."""
    return _step(ctx, judge, ms, fails)


@node("chaos.pay", uses_key=True)
def pay(ctx: NodeContext, *, judge: str, ms: int, fails: int = 0) -> dict[str, Any]:
    """Leave an effect under the idempotency key; the far side knows a key that it has seen."""

    def paid(court: Court) -> None:
        court.execute(
            "INSERT INTO effect (key, execution, step, epoch, attempt) VALUES (%s, %s, %s, %s, %s)"
            " ON CONFLICT (key) DO NOTHING",
            [ctx.idempotency_key, *_whose(ctx)],
        )

    return _step(ctx, judge, ms, fails, act=paid)


@node("chaos.send")
def send(ctx: NodeContext, *, judge: str, ms: int, once: bool, fails: int = 0) -> dict[str, Any]:
    """Do what must not be done twice; `once` unless the step may be tried again."""

    def begun(court: Court) -> None:
        if once:
            court.execute(
                "INSERT INTO once (execution, step) VALUES (%s, %s)", [ctx.execution_id, ctx.step]
            )

    return _step(ctx, judge, ms, fails, begin=begun)


@node("chaos.mend")
def mend(ctx: NodeContext, *, judge: str, ms: int) -> dict[str, Any]:
    """Recover a step."""
    return _step(ctx, judge, ms, 0, role="recover")


def _nothing(_court: Court) -> None:
    pass


def _step(
    ctx: NodeContext,
    judge: str,
    ms: int,
    fails: int,
    *,
    role: str = "step",
    begin: Callable[[Court], None] = _nothing,
    act: Callable[[Court], None] = _nothing,
) -> dict[str, Any]:
    """Tell that it begins, take its time, act, fail if it is to, tell that it is done."""
    with psycopg.connect(judge, autocommit=True, connect_timeout=CONNECT_SECONDS) as court:
        try:
            court.execute(
                "INSERT INTO start (execution, step, epoch, attempt, role, pid)"
                " VALUES (%s, %s, %s, %s, %s, %s)",
                [*_whose(ctx), role, os.getpid()],
            )
            begin(court)
        except psycopg.errors.UniqueViolation as violated:
            _accuse(ctx, judge, str(violated.diag.constraint_name))
        time.sleep(ms / 1000)
        act(court)
        if role == "step" and ctx.attempt <= fails:
            raise StepError("TRANSIENT_ERROR", f"attempt {ctx.attempt} fails, as was planned")
        court.execute(
            "INSERT INTO done (execution, step, epoch, attempt, role) VALUES (%s, %s, %s, %s, %s)",
            [*_whose(ctx), role],
        )
    return {"step": ctx.step}


def _accuse(ctx: NodeContext, judge: str, what: str) -> None:
    with psycopg.connect(judge, autocommit=True, connect_timeout=CONNECT_SECONDS) as court:
        court.execute(
            "INSERT INTO violation (execution, step, epoch, attempt, what) VALUES (%s, %s, %s, %s, %s)",
            [*_whose(ctx), what],
        )
    raise StepError("POLICY_VIOLATION", f"it runs a second time: {what}")


def _whose(ctx: NodeContext) -> list[Any]:
    return [ctx.execution_id, ctx.step, ctx.epoch, ctx.attempt]
