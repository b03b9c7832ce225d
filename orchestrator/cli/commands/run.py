"""`isolane run FILE --local`: for authors of blueprints and nodes.

Timing: a command; returns when the run has ended.
Model: sync, the nodes in a child process.
Guarantee: needs neither PostgreSQL nor Redis, and stores nothing.
Failure: exit 1 if the run does not succeed; Ctrl-C cancels it.
"""

import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from executions.blueprints.amounts import amount_text
from executions.blueprints.reading import read
from executions.blueprints.source import Source
from executions.blueprints.validation.rules import check_document
from executions.local.engine import TENANT, LocalEngine
from executions.local.run import LocalRun, LocalStep
from executions.semantics.approval_reply import ApprovalReply
from executions.semantics.seeds import SEED_BITS
from executions.states import ExecutionState, StepState
from isolane.text import MESSAGE_MAX, storable
from orchestrator import env
from orchestrator.cli.support.django import CONSOLE
from orchestrator.cli.support.local_nodes import local_runner, node_options, nodes_in
from orchestrator.cli.support.local_resources import local_grants
from orchestrator.cli.support.parsing import (
    FILE,
    hint_at_quotes,
    input_pair,
    located,
    plain,
    read_text,
)
from orchestrator.cli.support.source_locations import SourceLocations
from resources.runtimes.base import RuntimeBackend

SHOWN = 60  # characters of an output in the table
STDIN = 0
READ_BYTES = 4096
POLL_SECONDS = 0.2  # between two looks, while a question is open, at whether to go on asking
ANSWERS = {"y": True, "yes": True, "n": False, "no": False}


@click.command()
@click.argument("file", type=FILE)
@click.option("--local", is_flag=True, required=True, help="Run here, not on a platform.")
@click.option(
    "--input",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="An input; VALUE is JSON or text. Repeatable.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**SEED_BITS - 1),
    help="Seed of the run's random numbers and backoffs; the same seed gives the same numbers.",
)
@click.option(
    "--answer",
    type=click.Choice(["approve", "reject"]),
    help="Answer to all questions of the run. Default: ask here.",
)
@click.option(
    "--resources",
    "definitions",
    type=FILE,
    help="A YAML file with definitions of the blueprint's resources: type, config, secrets, scope.",
)
@node_options
@click.option("--json", "as_json", is_flag=True, help="Print the run as JSON, for programs.")
def run(
    *,
    file: Path,
    local: bool,
    pairs: tuple[str, ...],
    seed: int | None,
    answer: str | None,
    definitions: Path | None,
    packages: tuple[str, ...],
    tasks: tuple[str, ...],
    paths: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Run the blueprint in FILE on this machine, without any server.

    Steps run in a separate process, as on a platform, with the same retries, timeouts, budgets and limits. Their log
    lines go to stderr; at the end the steps and the outputs are printed. Exit 1 if the run does not succeed. Ctrl-C
    cancels it.

    \b
    isolane run examples/greeting.yaml --local --input name=Ada
    isolane run flows/shout.yaml --local --package greetings --input name=Ada --seed 7
    isolane run flows/sync.yaml --local --resources flows/resources.yaml
    """
    inputs = dict(input_pair(pair) for pair in pairs)
    with local_runner(file, packages=packages, tasks=tasks, paths=paths) as backend:
        locations = SourceLocations(file=file, source=_checked(file, backend))
        grants = local_grants(locations.source.document, definitions)
        with _cancelled_by_signal() as cancelled, hint_at_quotes():
            engine = LocalEngine(
                locations.source.document,
                inputs,
                backend=backend,
                listener=Terminal(locations, answer=answer, cancelled=cancelled),
                limits=env.read_limits(os.environ),
                grants=grants,
                seed=seed,
                cancelled=cancelled,
            )
            ended = engine.run()
    if location := locations.of_outputs(ended.message):
        click.secho(f"{location}: {plain(ended.message)}", fg="red", err=True)
    _print_run(ended, as_json=as_json)
    if ended.state is not ExecutionState.SUCCEEDED:
        raise SystemExit(1)


class Terminal:
    """Print progress to stderr, so that stdout holds the result alone."""

    def __init__(
        self, locations: SourceLocations, *, answer: str | None, cancelled: threading.Event
    ) -> None:
        self._locations = locations
        self._answer = answer
        self._cancelled = cancelled
        self._typed = b""  # not yet used as an answer

    def log_line(self, step: str, level: str, message: str) -> None:
        """Print a line."""
        click.echo(f"{step} {level}: {plain(message)}", err=True)

    def progress(self, step: str, fraction: float, message: str) -> None:
        """Print how far a step is."""
        click.echo(f"{step} {fraction:.0%} {plain(message)}".rstrip(), err=True)

    def error(self, step: str, trace: str) -> None:
        """Print the whole trace: it ends at the author's own line."""
        click.secho(plain(trace).rstrip(), fg="red", err=True)

    def attempt_finished(self, step: LocalStep) -> None:
        """Print how an attempt ended, and where in the file what failed stands."""
        words = (step.path, step.state.value, step.code, plain(step.message))
        line = " ".join(word for word in words if word)
        if step.state in {StepState.FAILED, StepState.RETRYING}:
            location = self._locations.of_step(step.position, step.message)
            click.secho(f"{location}: {line}", fg="red", err=True)
        else:
            click.secho(line, dim=True, err=True)

    def waiting(self, seconds: float) -> None:
        """Print for how long."""
        click.secho(f"waiting {seconds:.1f} s", dim=True, err=True)

    def ask(self, step: str, question: str, expires_s: float) -> ApprovalReply | None:
        """Ask here, unless the command said the answer beforehand."""
        click.secho(f"{step} asks: {plain(question)}", bold=True, err=True)
        if self._answer:
            return ApprovalReply(approved=self._answer == "approve", by=TENANT)
        click.echo(
            "Type y or n, and a comment if you like; --answer gives the answer in advance.",
            err=True,
        )
        until = time.monotonic() + expires_s
        while line := self._line(until):
            word, _, comment = storable(line.strip(), MESSAGE_MAX).partition(" ")
            if word.lower() in ANSWERS:
                return ApprovalReply(
                    approved=ANSWERS[word.lower()], by=TENANT, comment=comment.strip()
                )
            click.echo("Please begin with y or n.", err=True)
        return None

    def _line(self, until: float) -> str:
        """Return the next line; empty at the end of input, after `until`, or if the run is cancelled."""
        if sys.stdin is None:  # closed from the start: the descriptor may be anything now
            return ""
        while not self._cancelled.is_set() and time.monotonic() < until:
            if b"\n" in self._typed:
                line, _, self._typed = self._typed.partition(b"\n")
                return f"{line.decode(errors='replace')}\n"
            # Not through sys.stdin, which reads ahead: select() does not see its buffer.
            if select.select([STDIN], [], [], POLL_SECONDS)[0]:
                piece = os.read(STDIN, READ_BYTES)
                # The last line may lack its end.
                self._typed += piece or (b"\n" if self._typed else b"")
                if not self._typed:
                    break
        return ""


def _checked(file: Path, backend: RuntimeBackend) -> Source:
    with located(file):
        source = read(read_text(file))
        known = nodes_in(backend)
        with source.located():
            check_document(source.document, known)
    return source


@contextlib.contextmanager
def _cancelled_by_signal() -> Iterator[threading.Event]:
    """Cancel the run on Ctrl-C; a second Ctrl-C ends the command."""
    cancelled = threading.Event()

    def cancel(_number: int, _frame: FrameType | None) -> None:
        if cancelled.is_set():
            raise KeyboardInterrupt
        cancelled.set()

    before = signal.signal(signal.SIGINT, cancel)
    try:
        yield cancelled
    finally:
        signal.signal(signal.SIGINT, before)


# --- the end
def _print_run(run: LocalRun, *, as_json: bool) -> None:
    if as_json:
        costs = {kind: amount_text(amount) for kind, amount in run.costs.items()}
        _print_json({**asdict(run), "costs": costs})
        return
    table = Table("step", "node", "state", "attempts", "code", "seconds", "output")
    for step in run.steps:
        table.add_row(
            step.path, escape(step.uses), step.state.value, str(step.attempt or ""), step.code,
            f"{step.seconds:.2f}" if step.attempt else "", escape(_short(step.output)),
        )  # fmt: skip
    CONSOLE.print(table)
    line = " ".join(word for word in (run.state.value, run.code, plain(run.message)) if word)
    click.secho(f"{line} (seed {run.seed})", bold=True)
    for kind, amount in run.costs.items():
        click.echo(f"cost: {amount_text(amount)} {kind}")
    for held in run.resources:
        click.echo(
            plain(f"resource: {held.resource_id} {held.ended or 'open'} {held.error}".rstrip())
        )
    if run.state is ExecutionState.SUCCEEDED:
        _print_json(run.steps[-1].output if run.outputs is None else run.outputs)


def _short(value: Any) -> str:
    if value is None:
        return ""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _print_json(value: Any) -> None:
    click.echo(plain(json.dumps(value, indent=2, default=str, ensure_ascii=False)))
