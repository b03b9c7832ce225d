"""Profile runs of the platform: CPU by process, SQL statements, and calls of the workers' threads.

Timing: minutes.
Model: sync.
Guarantee: best-effort; profiling costs time, so its rates are not to be compared.
Failure: bubble.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.rows import class_row
from rich.table import Table

from bench.cpu import difference, spent
from bench.environment import PROFILES_PERIOD
from bench.stage import Stage

STATEMENTS = """
SELECT sum(calls)::int AS calls, sum(total_plan_time) AS plan_ms, sum(total_exec_time) AS exec_ms,
       left(regexp_replace(query, '\\s+', ' ', 'g'), 70) AS text
FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = 'isolane'
GROUP BY 4 ORDER BY sum(total_plan_time + total_exec_time) DESC LIMIT 20"""
CALLS = 45
POOL = "ThreadPoolExecutor"
IDLE = "concurrent.futures.thread._worker"


@dataclass(frozen=True)
class Statement:
    """One SQL statement as PostgreSQL counted it."""

    calls: int
    plan_ms: float
    exec_ms: float
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """Profile of one drain."""

    runs: int
    seconds: float
    cpu_ms: Mapping[str, float]
    statements: list[Statement]
    stacks: Counter[str]


def profile_drain(stage: Stage, name: str, *, steps: int, runs: int) -> Profile:
    """Profile one drain."""
    stage.drivers[name].call("fill", steps=steps, runs=runs)
    logs = stage.servers.paths.logs
    with psycopg.connect(stage.servers.superuser_url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        connection.execute("SELECT pg_stat_statements_reset()")
        stacks, before = _samples(logs), spent(stage.supervisor.pids)
        seconds = stage.drivers[name].call("drain")
        cpu_ms = difference(before, spent(stage.supervisor.pids), runs)
        statements = connection.cursor(row_factory=class_row(Statement)).execute(STATEMENTS)
        found = statements.fetchall()
    return Profile(
        runs=runs,
        seconds=seconds,
        cpu_ms=cpu_ms,
        statements=found,
        stacks=_samples(logs) - stacks,
    )


def tables(name: str, steps: int, seen: Profile) -> Iterator[Table]:
    """Yield the tables to print."""
    rate = f"{seen.runs / seen.seconds:.1f} runs/s while profiled"
    cpu = Table("process", "CPU ms/run", title=f"{name}, {steps} steps: {rate}")
    for process, spent_ms in seen.cpu_ms.items():
        cpu.add_row(process, f"{spent_ms:.2f}")
    yield cpu
    statements = Table("calls/run", "planned ms/run", "executed ms/run", "statement")
    for one in seen.statements:
        cells = (one.calls / seen.runs, one.plan_ms / seen.runs, one.exec_ms / seen.runs)
        statements.add_row(*(f"{cell:.2f}" for cell in cells), one.text)
    yield statements
    for kind in (POOL, "MainThread"):
        yield _calls(kind, seen.stacks)


def inclusive(kind: str, stacks: Mapping[str, int]) -> Counter[str]:
    """Count in how many stacks of working threads of this kind each call was."""
    seen: Counter[str] = Counter()
    for stack, count in stacks.items():
        thread, *calls = stack.split(";")
        if thread.startswith(kind) and calls and calls[-1] != IDLE:
            seen.update(dict.fromkeys(calls, count))
            seen["all"] += count
    return seen


def _calls(kind: str, stacks: Mapping[str, int]) -> Table:
    seen = inclusive(kind, stacks)
    whole = seen.pop("all", 1)
    table = Table("share", "in this call, waiting or working", title=kind)
    for call, count in seen.most_common(CALLS):
        table.add_row(f"{count / whole:.0%}", call)
    return table


def _samples(logs: Path) -> Counter[str]:
    """Return the samples so far; the workers write them about once per second."""
    time.sleep(PROFILES_PERIOD * 1.5)
    total: Counter[str] = Counter()
    for file in logs.glob("*.samples"):
        total.update(json.loads(file.read_text(encoding="utf-8")))
    return total
