"""Whether the references of a blueprint can be met: each is whole, and needs only what comes before. Pure."""

from collections.abc import Collection
from typing import Any

from executions.blueprint.errors import BadReference, InvalidBlueprint, shown
from executions.blueprint.expressions import (
    MAX_REFERENCES,
    RECOVERY_ROOTS,
    REFERENCE,
    ROOTS,
    check_expression,
    check_text,
    expressions,
    texts,
)
from executions.blueprint.parsing import quoted
from executions.blueprint.plan import Plan, PlannedStep
from executions.blueprint.suggestions import instead_of


def check_references(plan: Plan) -> None:
    """Refuse references that nothing can meet; the outputs may refer to every step."""
    keys = [step.path for step in plan.steps]
    for step in plan.steps:
        _check_step(step, keys)
    _References("$.outputs", keys, keys).check(plan.outputs)


def _check_step(step: PlannedStep, keys: list[str]) -> None:
    where = f"$.steps[{step.position}]"
    references = _References(where, keys[: step.position], keys)
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


class _References:
    """Checks the references of one step, and counts them."""

    def __init__(self, where: str, earlier: Collection[str], known: Collection[str]) -> None:
        self._where = where
        self._earlier = frozenset(earlier)
        self._known = known
        self._left = MAX_REFERENCES

    def check(self, value: Any, name: str = "", roots: tuple[str, ...] = ROOTS) -> None:
        """Refuse what a value refers to in vain."""
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
            needed = [(each, key) for each in found for key in check_expression(each, roots).steps]
        except BadReference as bad:
            raise BadReference(f"{path}: {bad.detail}", field=path) from None
        for expression, key in needed:
            if key not in self._earlier:
                raise InvalidBlueprint(f"{path}: {self._missing(expression, key)}", field=path)

    def _missing(self, expression: str, key: str) -> str:
        needs = f"{quoted(expression)} needs step {shown(repr(key))}"
        if key in self._known:
            return f"{needs}, which does not come before."
        return f"{needs}, which there is not; {instead_of(key, self._earlier)}"
