"""Masking of sensitive values: by field in values, by content wherever they occur in texts. Pure."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from executions.blueprints.plan import WHOLE
from executions.semantics.secret_forms import forms

MASK = "***"
MIN_LENGTH = 4  # characters; shorter texts occur everywhere
# Everything shown is searched for each text. Beyond these limits there is no search: everything is masked.
MAX_TEXTS = 1000
MAX_CHARACTERS = 1_000_000
_ELLIPSIS = "…"  # marks where a message, a line or a trace was truncated
_BETWEEN = "\x00"  # occurs in no text that can be stored


def mask_fields(value: Any, fields: Collection[str]) -> Any:
    """Return a value with these fields of its top level masked, or all of it."""
    if not fields:
        return value
    if WHOLE in fields:
        return MASK
    if not isinstance(value, Mapping):
        return value
    return {name: MASK if name in fields else item for name, item in value.items()}


def masked_inputs(inputs: Mapping[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """Return a run's inputs as they may be shown; inputs that repeat a sensitive one are masked, too."""
    masker = Masker()
    masker.learn(inputs, fields)
    return masker.masked_items(mask_fields(inputs, set(fields) & set(inputs)))


class Masker:
    """Replaces known sensitive texts wherever they occur in others."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._ordered: list[
            str
        ] = []  # the longest first, so that a text containing another is replaced whole
        self._is_full = False
        self._has_numbers = False  # one of the texts may be a number
        self._learned: set[str] = set()  # the secrets themselves
        self._secrets: frozenset[str] = frozenset()  # the texts that must not be stored

    def learn(self, value: Any, fields: Collection[str]) -> None:
        """Mask the texts and numbers inside these fields of a value from now on."""
        if not fields:
            return
        if WHOLE in fields:
            found = set(_searched(value))
        elif isinstance(value, Mapping):
            found = {text for name in fields for text in _searched(value.get(name))}
        else:
            return
        self._know(found)

    def learn_secrets(self, secrets: Iterable[str]) -> None:
        """Mask injected secrets, in all their forms, from now on."""
        new = set(secrets) - self._learned
        self._learned |= new
        self._secrets |= {form for secret in new for form in forms(secret)}
        self._know({form for form in self._secrets if _BETWEEN not in form})

    @property
    def has_secrets(self) -> bool:
        """True if secrets were injected into the run."""
        return bool(self._secrets)

    def holds_secret(self, text: str) -> bool:
        """Return True if the text contains an injected secret."""
        return any(secret in text for secret in self._secrets)

    def _know(self, found: set[str]) -> None:
        if found <= self._texts:
            return
        self._texts |= found
        self._has_numbers = self._has_numbers or any(map(_may_be_number, found))
        self._is_full = len(self._texts) > MAX_TEXTS or sum(map(len, self._texts)) > MAX_CHARACTERS
        if not self._is_full:
            self._ordered = sorted(self._texts, key=len, reverse=True)

    def knows(self, text: str) -> bool:
        """Return True if the text contains a sensitive text."""
        return any(known in text for known in self._texts)

    def mask(self, text: str, *, continued: bool = False, truncated: bool = False) -> str:
        """Return the text with known sensitive texts masked.

        `truncated`: its end was cut off, so it may end with the beginning of a known text.
        `continued`: it is the rest of a truncated text, so it may begin with the end of a known text.
        """
        if not self._texts or not text:
            return text
        if self._is_full:
            return MASK
        if truncated and continued and any(text in known for known in self._ordered):
            return MASK
        if truncated or text.endswith(_ELLIPSIS):
            text = self._without_beginnings(text)
        if continued or text.startswith(_ELLIPSIS):
            text = self._without_ends(text)
        return self._replaced(text)

    def masked(self, value: Any) -> Any:
        """Mask all texts in a JSON value, names too; return the value itself if nothing is found."""
        if not self._texts:
            return value
        if self._is_full:
            return _masked_whole(value)
        joined = _BETWEEN.join(_texts_of(value))
        masked = self._replaced(joined)
        if masked == joined and not self._has_numbers:
            return value
        return self._rebuilt(value, iter(masked.split(_BETWEEN)))

    def masked_items(self, items: Mapping[str, Any]) -> dict[str, Any]:
        """Mask each of several values under names that a blueprint has given."""
        if self._is_full:
            return {name: _masked_whole(value) for name, value in items.items()}
        if not items:
            return {}
        return dict(zip(items, self.masked(list(items.values())), strict=True))

    def _replaced(self, text: str) -> str:
        for known in self._ordered:
            text = text.replace(known, MASK)
        return text

    def _rebuilt(self, value: Any, texts: Iterator[str]) -> Any:
        if isinstance(value, str):
            text = next(texts)
            return value if text == value else text
        if isinstance(value, dict):
            built = {self._rebuilt(n, texts): self._rebuilt(v, texts) for n, v in value.items()}
            same = all(name in built and built[name] is item for name, item in value.items())
            return value if same else built
        if isinstance(value, list):
            items = [self._rebuilt(item, texts) for item in value]
            same = all(new is old for new, old in zip(items, value, strict=True))
            return value if same else items
        return MASK if _is_number(value) and str(value) in self._texts else value

    # --- truncated texts
    def _without_beginnings(self, text: str) -> str:
        """Mask the beginning of a known text whose end was cut off."""
        body = text.removesuffix(_ELLIPSIS)
        begins = min(_begins(known, body) for known in self._ordered)
        return text if begins == len(body) else body[:begins] + MASK + text[len(body) :]

    def _without_ends(self, text: str) -> str:
        """Mask the end of a known text whose beginning was cut off."""
        body = text.removeprefix(_ELLIPSIS)
        ends = max(_ends(known, body) for known in self._ordered)
        return text if not ends else text[: len(text) - len(body)] + MASK + body[ends:]


def _begins(known: str, body: str) -> int:
    """Return the index at which a known text begins whose end is missing; the length if there is none."""
    head, at = known[:MIN_LENGTH], max(len(body) - len(known) + 1, 0)
    while (at := body.find(head, at)) >= 0:
        if known.startswith(body[at:]):
            return at
        at += 1
    return len(body)


def _ends(known: str, body: str) -> int:
    """Return the index at which a known text ends whose beginning is missing; 0 if there is none."""
    tail, end = known[-MIN_LENGTH:], len(known) - 1
    while (at := body.rfind(tail, 0, end)) >= 0:
        end = at + MIN_LENGTH
        if known.endswith(body[:end]):
            return end
        end -= 1
    return 0


def _masked_whole(value: Any) -> Any:
    """Keep only the type of the value."""
    if not value or value is True:
        return value
    if isinstance(value, dict):
        return {MASK: MASK}
    return [MASK] if isinstance(value, list) else MASK


def _texts_of(value: Any) -> Iterator[str]:
    """Yield all texts in a value, in the order in which it is rebuilt."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _texts_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts_of(item)


def _searched(value: Any) -> Iterator[str]:
    """Yield the texts to search for: all texts and numbers in a value, as they are printed."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
        elif isinstance(part, str) or _is_number(part):
            yield from (form for form in _printed_forms(str(part)) if _can_be_found(form))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _may_be_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _can_be_found(form: str) -> bool:
    return len(form) >= MIN_LENGTH and _BETWEEN not in form


def _printed_forms(text: str) -> set[str]:
    """Return the text as steps and libraries print it: line by line, or quoted as in JSON and Python."""
    quoted = (json.dumps(text), json.dumps(text, ensure_ascii=False), repr(text))
    return {text, *text.splitlines(), *(form[1:-1] for form in quoted)}
