"""A blueprint as its author wrote it: the document, and the line of each part. Pure."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from executions.blueprints.errors import BlueprintError
from executions.blueprints.paths import ROOT, child, item, parent


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A document read from a text."""

    document: dict[str, Any]
    lines: Mapping[str, int]  # by path, from 1

    def nearest(self, path: str) -> str:
        """Return the path if the text has it, else that of the nearest part around it; empty if there is none."""
        while path and path not in self.lines:
            path = parent(path)
        return path

    def locate(self, error: BlueprintError) -> BlueprintError:
        """Return the error with the line of its subject, or of the nearest part around it."""
        path = self.nearest(error.field or "")
        if not path:
            return error
        line = self.lines[path]
        return type(error)(f"line {line}: {error.detail}", field=error.field, line=line)

    @contextlib.contextmanager
    def located(self) -> Iterator[None]:
        """Add the line to refusals inside the block."""
        try:
            yield
        except BlueprintError as error:
            raise self.locate(error) from None


def lines_of(node: yaml.Node | None) -> dict[str, int]:
    """Return the line of every part of a text by its path: the line of its key, if it has one."""
    lines: dict[str, int] = {}
    waiting = [(ROOT, node, node)] if node else []
    while waiting:
        where, start, value = waiting.pop()
        lines.setdefault(where, start.start_mark.line + 1)
        if isinstance(value, yaml.MappingNode):
            waiting.extend((child(where, _name(key)), key, inner) for key, inner in value.value)
        elif isinstance(value, yaml.SequenceNode):
            inside = enumerate(value.value)
            waiting.extend((item(where, index), inner, inner) for index, inner in inside)
    return lines


def _name(key: yaml.Node) -> str:
    return str(key.value)
