"""A document as text: always the same for the same content, so that versions can be compared. Pure.

The database keeps no order of keys: fields come in the schema's order, all else by name.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from executions.blueprints.differences import unified
from executions.blueprints.numbers import know_exponents
from executions.blueprints.schema.published import DOCUMENT_SCHEMA, RECOVER, RESOURCE, RETRY, STEP
from executions.blueprints.work import Work

_NODE = 200  # units of work for one value
_EVENT = 400  # likewise for one event of the writer
_WHOLE = 10**12  # units: a published document can always be read, and publishing has bounded it


class _Dumper(yaml.SafeDumper):
    """Writes no aliases, which are refused when read; lets other threads run in between."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._work = Work(_WHOLE)

    def represent_data(self, data: Any) -> yaml.Node:
        self._work.spend(_NODE)
        return super().represent_data(data)

    def emit(self, event: yaml.Event) -> None:
        self._work.spend(_EVENT)
        super().emit(event)

    def ignore_aliases(self, _: Any) -> bool:
        return True


know_exponents(_Dumper)


def as_yaml(document: Mapping[str, Any]) -> str:
    """Return the document as YAML."""
    text: str = yaml.dump(
        _document(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
    )
    return text


def unified_diff(old: Mapping[str, Any], new: Mapping[str, Any], names: tuple[str, str]) -> str:
    """Return the difference between two documents; empty if there is none."""
    before, after = (as_yaml(each).splitlines(keepends=True) for each in (old, new))
    return unified(before, after, names)


def _document(document: Mapping[str, Any]) -> dict[str, Any]:
    written = _ordered(document, DOCUMENT_SCHEMA["properties"])
    written["steps"] = [_step(step) for step in document["steps"]]
    if resources := document.get("resources"):
        fields = RESOURCE["properties"]
        written["resources"] = {
            name: _ordered(resources[name], fields) for name in sorted(resources)
        }
    return written


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    written = _ordered(step, STEP["properties"])
    for name, schema in (("retry", RETRY), ("recover", RECOVER)):
        if name in step:
            written[name] = _ordered(step[name], schema["properties"])
    return written


def _ordered(value: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    return {field: _sorted(value[field]) for field in fields if field in value}


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(inner) for inner in value] if isinstance(value, list) else value
