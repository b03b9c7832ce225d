"""Checks of a blueprint's references: each is complete, and needs only earlier steps and known inputs. Pure."""

from collections.abc import Collection, Mapping
from typing import Any

from executions.blueprints.errors import (
    BadReference,
    BlueprintTooExpensive,
    InvalidBlueprint,
    shown,
)
from executions.blueprints.expressions.parsing import MAX_EXPRESSION, Expression, quoted
from executions.blueprints.expressions.resolution import (
    MAX_REFERENCES,
    OPENING,
    RECOVERY_ROOTS,
    REFERENCE,
    ROOTS,
    check_expression,
    check_text,
    expressions,
    texts,
)
from executions.blueprints.paths import child
from executions.blueprints.plan import Plan, PlannedStep
from executions.blueprints.suggestions import instead_of
from executions.blueprints.work import TooMuchWork, Work, check_budget

_PARSED = 400  # units of work for one character of an expression


def check_references(plan: Plan, inputs: Collection[str] | None = None) -> None:
    """Refuse references that cannot be resolved; the outputs may refer to every step.

    `inputs` are the names of all inputs; None if the schema allows others.
    """
    keys = [step.path for step in plan.steps]
    with check_budget() as work:
        parser = _Parser(work)
        for step in plan.steps:
            where = f"$.steps[{step.position}]"
            _check_step(step, _References(where, keys[: step.position], keys, inputs, parser))
        _References("$.outputs", keys, keys, inputs, parser).check(plan.outputs)
    _refuse_in_labels(plan.labels)


def _refuse_in_labels(labels: Mapping[str, str]) -> None:
    """Refuse references in labels: they belong to the version and are known before a run has values."""
    for name, text in labels.items():
        if OPENING in text:
            where = child("$.labels", name)
            raise InvalidBlueprint(
                f"{where} is {shown(repr(text))}; a label holds no references.", field=where
            )


def _check_step(step: PlannedStep, references: "_References") -> None:
    where = f"$.steps[{step.position}]"
    if step.when is not None:
        if not REFERENCE.fullmatch(step.when):
            raise InvalidBlueprint(
                f"{where}.when is {shown(repr(step.when))}; write exactly one reference,"
                " such as ${steps.check.ok}.",
                field=f"{where}.when",
            )
        references.check(step.when, "when")
    references.check(step.idempotency_key, "idempotency_key")
    references.check(step.parameters, "with")
    if step.recover:
        references.check(step.recover.parameters, "recover.with", RECOVERY_ROOTS)


class _Parser:
    """Parses expressions, each text once in a document."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._seen: set[str] = set()

    def parse(self, text: str, roots: tuple[str, ...]) -> Expression:
        """Return a checked expression."""
        if text not in self._seen:
            self._seen.add(text)
            self._work.spend(_PARSED * min(len(text), MAX_EXPRESSION))
        return check_expression(text, roots)


class _References:
    """Checks the references of one step, and counts them."""

    def __init__(
        self,
        where: str,
        earlier: Collection[str],
        known: Collection[str],
        inputs: Collection[str] | None,
        parser: _Parser,
    ) -> None:
        self._parser = parser
        self._where = where
        self._earlier = frozenset(earlier)
        self._known = known
        self._inputs = inputs
        self._left = MAX_REFERENCES

    def check(self, value: Any, name: str = "", roots: tuple[str, ...] = ROOTS) -> None:
        """Refuse references in a value that cannot be resolved."""
        where = f"{self._where}.{name}" if name else self._where
        for path, text in texts(value, where):
            found = expressions(text)
            self._left -= len(found)
            if self._left < 0:
                raise BadReference(
                    f"{where}: a step has at most {MAX_REFERENCES} references, and so have the outputs.",
                    field=where,
                )
            self._check_text(path, text, found, roots)

    def _check_text(self, path: str, text: str, found: list[str], roots: tuple[str, ...]) -> None:
        try:
            check_text(text)
            checked = [(each, self._parser.parse(each, roots)) for each in found]
        except TooMuchWork:
            raise BlueprintTooExpensive(
                f"{path}: with the references before it, this one takes too much work to parse; write fewer or"
                " shorter ones.",
                field=path,
            ) from None
        except BadReference as bad:
            raise BadReference(f"{path}: {bad.detail}", field=path) from None
        for written, expression in checked:
            if missing := self._missing(expression):
                raise InvalidBlueprint(f"{path}: {quoted(written)} needs {missing}", field=path)

    def _missing(self, expression: Expression) -> str:
        """Return the missing step or input of an expression, with a suggestion; empty if there is none."""
        for key in expression.steps:
            if key not in self._earlier:
                return self._missing_step(key)
        known = self._inputs
        for name in expression.inputs if known is not None else ():
            if known is not None and name not in known:
                return f"input {shown(repr(name))}, which the schema does not allow; {instead_of(name, known)}"
        return ""

    def _missing_step(self, key: str) -> str:
        needs = f"step {shown(repr(key))}"
        if key in self._known:
            return f"{needs}, which does not come before it."
        return f"{needs}, which does not exist; {instead_of(key, self._earlier)}"
