"""Nodes on this machine, described and run by a runner of the command's own, as in a worker.

Timing: a command.
Model: sync, the nodes in a child process.
Guarantee: needs no server; the child is gone when the command ends.
Failure: bubble; nodes that cannot be loaded are named in one line.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from executions.blueprints.validation.nodes import NodeInfo, nodes_of
from resources.runtimes.base import RuntimeBackend, RuntimeStartError
from resources.runtimes.shared import SharedBackend

Command = TypeVar("Command", bound=Callable[..., Any])


def node_options(command: Command) -> Command:
    """Add `--package`, `--task-package` and `--path`."""
    command = click.option(
        "--path",
        "paths",
        multiple=True,
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="A folder to import from, beside that of FILE and those of ISOLANE_NODE_PATHS. Repeatable.",
    )(command)
    command = click.option(
        "--task-package",
        "tasks",
        multiple=True,
        metavar="NAME",
        help="A package whose functions steps use as task:… Repeatable. Default: ISOLANE_TASK_PACKAGES.",
    )(command)
    return click.option(
        "--package",
        "packages",
        multiple=True,
        metavar="NAME",
        help="A Python package with nodes. Repeatable. Default: ISOLANE_NODE_PACKAGES.",
    )(command)


@contextlib.contextmanager
def local_runner(
    file: Path, *, packages: Sequence[str], tasks: Sequence[str], paths: Sequence[Path]
) -> Iterator[RuntimeBackend]:
    """Yield a runner with these packages, for the blueprint in a file, and stop it at the end."""
    backend = SharedBackend(
        level="shared",
        size=1,
        packages=packages or _words("ISOLANE_NODE_PACKAGES"),
        tasks=tasks or _words("ISOLANE_TASK_PACKAGES"),
        paths=[file.resolve().parent, *paths, *_words("ISOLANE_NODE_PATHS", os.pathsep)],
    )
    try:
        yield backend
    finally:
        backend.stop()


def nodes_in(backend: RuntimeBackend) -> dict[str, NodeInfo]:
    """Return the nodes of a runner."""
    try:
        described = backend.describe()
    except RuntimeStartError as error:
        raise click.ClickException(f"The nodes cannot be loaded: {error}") from None
    return nodes_of(asdict(node) for node in described.nodes)


def _words(variable: str, separator: str = ",") -> tuple[str, ...]:
    value = os.environ.get(variable, "")
    if separator == os.pathsep:
        return tuple(word for word in value.split(separator) if word)
    return tuple(value.replace(separator, " ").split())
