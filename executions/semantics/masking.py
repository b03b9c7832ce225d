"""Hiding what is marked sensitive: by field in values, by value in texts. Pure."""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from executions.blueprint.plan import WHOLE

MASK = "***"
MIN_LENGTH = 4  # characters; a shorter text is found everywhere


def mask_fields(value: Any, fields: Collection[str]) -> Any:
    """A value with these fields of its top level masked, or all of it."""
    if not fields:
        return value
    if WHOLE in fields:
        return MASK
    if not isinstance(value, Mapping):
        return value
    return {name: MASK if name in fields else item for name, item in value.items()}


class Masker:
    """Replaces known sensitive texts wherever they stand in others."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def learn(self, value: Any, fields: Collection[str]) -> None:
        """Know the texts and numbers inside these fields of a value from now on."""
        if not fields:
            return
        if WHOLE in fields:
            found = set(_texts(value))
        elif isinstance(value, Mapping):
            found = {text for name in fields for text in _texts(value.get(name))}
        else:
            return
        # The longest first: what contains another is replaced as a whole.
        self._texts = sorted({*self._texts, *found}, key=len, reverse=True)

    def mask(self, text: str) -> str:
        """The text without what is known to be sensitive."""
        for known in self._texts:
            text = text.replace(known, MASK)
        return text


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
        elif isinstance(part, str | int | float) and not isinstance(part, bool):
            yield from (form for form in _forms(str(part)) if len(form) >= MIN_LENGTH)


def _forms(text: str) -> set[str]:
    """As steps and libraries print it: line by line, or quoted as JSON and Python do."""
    quoted = (json.dumps(text), json.dumps(text, ensure_ascii=False), repr(text))
    return {text, *text.splitlines(), *(form[1:-1] for form in quoted)}
