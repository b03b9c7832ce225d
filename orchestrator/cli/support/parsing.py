"""Read files and arguments; print untrusted texts safely."""

import contextlib
import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from executions.blueprints.errors import BlueprintError
from executions.blueprints.schema.inputs import WantsText
from foundation.errors import InvalidInput

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_LINE = re.compile(r"\Aline \d+:? ", re.IGNORECASE)


def read_text(file: Path) -> str:
    """Return the text of a file, which must be UTF-8."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} is not text in UTF-8; save it as such.", field="file") from None


@contextlib.contextmanager
def located(file: Path) -> Iterator[None]:
    """Prefix errors of a blueprint with file:line, the form that editors and terminals know."""
    try:
        yield
    except BlueprintError as error:
        where = f"{file}:{error.line}" if error.line else str(file)
        rest = _LINE.sub("", error.detail) if error.line else error.detail
        raise type(error)(f"{where}: {rest}", field=error.field, line=error.line) from None


def input_pair(text: str) -> tuple[str, Any]:
    """Parse NAME=VALUE; the value is JSON or text."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE.", param_hint="--input")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


@contextlib.contextmanager
def hint_at_quotes() -> Iterator[None]:
    """Add a hint on quoting to errors about a number in place of text."""
    try:
        yield
    except WantsText as error:
        name = (error.field or "").removeprefix("inputs.")
        raise WantsText(
            f"{error.detail}; to give text, write --input '{name}=\"…\"'", field=error.field
        ) from None


def plain(text: str) -> str:
    """Escape control characters, so that the text cannot control the terminal; JSON stays valid."""
    return "".join(c if c.isprintable() or c in "\t\n" else json.dumps(c)[1:-1] for c in text)


def event_line(at: datetime, text: str) -> str:
    """Return a line for an event: its time of day and a sentence."""
    return f"{at:%H:%M:%S}.{at.microsecond // 1000:03}  {plain(text)}"
