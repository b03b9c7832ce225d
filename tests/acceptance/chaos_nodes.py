"""Nodes of the chaos trial: each step records its start and its effects at an observer outside of the platform."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from isolane import NodeContext, StepError, node

Connection = psycopg.Connection[tuple[Any, ...]]


@node("chaos.work", idempotent=True, deterministic=True)
def work(ctx: NodeContext, *, ms: int, fails: int = 0) -> dict[str, Any]:
    """Take some time."""
    return _step(ctx, ms, fails)


@node("chaos.pay", uses_key=True)
def pay(ctx: NodeContext, *, ms: int, fails: int = 0) -> dict[str, Any]:
    """Record an effect under the idempotency key; the observer ignores a key that it knows."""

    def paid(connection: Connection) -> None:
        connection.execute(
            "INSERT INTO effect (key, execution, step, epoch, attempt) VALUES (%s, %s, %s, %s, %s)"
            " ON CONFLICT (key) DO NOTHING",
            [ctx.idempotency_key, *_identity(ctx)],
        )

    return _step(ctx, ms, fails, act=paid)


@node("chaos.send")
def send(ctx: NodeContext, *, ms: int, once: bool, fails: int = 0) -> dict[str, Any]:
    """Do what must not be done twice; `once` is false if the step may be retried."""

    def begun(connection: Connection) -> None:
        if once:
            connection.execute(
                "INSERT INTO once (execution, step) VALUES (%s, %s)", [ctx.execution_id, ctx.step]
            )

    return _step(ctx, ms, fails, begin=begun)


@node("chaos.recover")
def recover(ctx: NodeContext, *, ms: int) -> dict[str, Any]:
    """Recover a step."""
    return _step(ctx, ms, 0, role="recover")


def _nothing(_connection: Connection) -> None:
    pass


def _step(
    ctx: NodeContext,
    ms: int,
    fails: int,
    *,
    role: str = "step",
    begin: Callable[[Connection], None] = _nothing,
    act: Callable[[Connection], None] = _nothing,
) -> dict[str, Any]:
    """Record the start, take time, act, fail if planned, record the end."""
    observer: Connection = ctx.resource("observer")
    try:
        observer.execute(
            "INSERT INTO start (execution, step, epoch, attempt, role, pid, namespace)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s)",
            [*_identity(ctx), role, os.getpid(), Path("/proc/self/ns/pid").stat().st_ino],
        )
        begin(observer)
    except psycopg.errors.UniqueViolation as violated:
        _report_violation(ctx, observer, str(violated.diag.constraint_name))
    time.sleep(ms / 1000)
    act(observer)
    if role == "step" and ctx.attempt <= fails:
        raise StepError("TRANSIENT_ERROR", f"attempt {ctx.attempt} fails as planned")
    observer.execute(
        "INSERT INTO done (execution, step, epoch, attempt, role) VALUES (%s, %s, %s, %s, %s)",
        [*_identity(ctx), role],
    )
    return {"step": ctx.step}


def _report_violation(ctx: NodeContext, observer: Connection, what: str) -> None:
    observer.execute(
        "INSERT INTO violation (execution, step, epoch, attempt, what) VALUES (%s, %s, %s, %s, %s)",
        [*_identity(ctx), what],
    )
    raise StepError("POLICY_VIOLATION", f"it runs a second time: {what}")


def _identity(ctx: NodeContext) -> list[Any]:
    return [ctx.execution_id, ctx.step, ctx.epoch, ctx.attempt]
