"""Texts that come from files and arguments, and texts of others that go to a terminal."""

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


def text_of(file: Path) -> str:
    """The text of a blueprint's file."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} is not text in UTF-8; save it as such.", field="file") from None


@contextlib.contextmanager
def located(file: Path) -> Iterator[None]:
    """Within, a refusal of a blueprint begins with file:line, as editors and terminals know it."""
    try:
        yield
    except BlueprintError as error:
        where = f"{file}:{error.line}" if error.line else str(file)
        rest = _LINE.sub("", error.detail) if error.line else error.detail
        raise type(error)(f"{where}: {rest}", field=error.field, line=error.line) from None


def input_pair(text: str) -> tuple[str, Any]:
    """An input as it is typed: NAME=VALUE, the value JSON or text."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE.", param_hint="--input")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


@contextlib.contextmanager
def typed_inputs() -> Iterator[None]:
    """Within, a number that came where text is wanted is refused with the way to type text."""
    try:
        yield
    except WantsText as error:
        name = (error.field or "").removeprefix("inputs.")
        raise WantsText(
            f"{error.detail}; to give text, write --input '{name}=\"…\"'", field=error.field
        ) from None


def plain(text: str) -> str:
    """A text of others that cannot steer the terminal; JSON stays the JSON that it is."""
    return "".join(c if c.isprintable() or c in "\t\n" else json.dumps(c)[1:-1] for c in text)


def story_line(at: datetime, text: str) -> str:
    """One thing that happened in a run, with its time of day."""
    return f"{at:%H:%M:%S}.{at.microsecond // 1000:03}  {plain(text)}"
