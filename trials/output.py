"""Lines that a trial prints while it runs."""

from collections.abc import Callable

import click

Progress = Callable[[str], None]


def progress(line: str) -> None:
    """Print a line of progress to standard error."""
    click.echo(f"  {line}", err=True)
