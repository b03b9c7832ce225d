"""Lines that trials print."""

from collections import Counter
from collections.abc import Callable

import click

Progress = Callable[[str], None]


def progress(line: str) -> None:
    """Print a line of progress to standard error."""
    click.echo(f"  {line}", err=True)


def print_counts(title: str, counts: Counter[str]) -> None:
    """Print a total and its parts."""
    click.echo(f"{title}: {counts.total()}")
    for name, number in sorted(counts.items()):
        click.echo(f"  {number:6} {name}")
