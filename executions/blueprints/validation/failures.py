"""Checks that a step's failure mode, retry, recovery and guarantee fit together. Pure."""

from collections.abc import Mapping
from typing import Any

from executions.blueprints.errors import InvalidBlueprint
from executions.blueprints.plan import FailureMode, Guarantee, PlannedStep
from executions.blueprints.validation.nodes import NodeInfo

# The declaration of a node, in its author's words, that a step with the guarantee needs.
_NEEDED = {
    Guarantee.EXACTLY_ONCE: "uses_key",
    Guarantee.IDEMPOTENT: "idempotent",
    Guarantee.DETERMINISTIC: "deterministic",
}


def check_failures(step: PlannedStep, written: Mapping[str, Any]) -> None:
    """Refuse a retry or a recovery that would never be used, or that is needed and missing."""
    where = f"$.steps[{step.position}]"
    if "retry" in written and step.on_failure is not FailureMode.RETRY:
        raise _refused(
            f"{where}.retry", "is used with on_failure: retry only; add that or remove it"
        )
    if step.on_failure is FailureMode.RETRY and step.guarantee is Guarantee.AT_MOST_ONCE:
        raise _refused(
            f"{where}.on_failure",
            "is retry, and a step that runs at_most_once never runs again; choose one of the two",
        )
    recovers = FailureMode.RECOVER in (step.on_failure, step.then)
    if recovers and step.recover is None:
        named = "on_failure" if step.on_failure is FailureMode.RECOVER else "retry.then"
        raise _refused(
            f"{where}.{named}",
            "is recover; add the recovery node, such as recover: {uses: data.map}",
        )
    if step.recover and not recovers:
        raise _refused(
            f"{where}.recover",
            "is never used; write on_failure: recover, or retry: {then: recover}, or remove it",
        )


def check_guarantee(step: PlannedStep, node: NodeInfo) -> None:
    """Refuse a guarantee that the node cannot give."""
    needed = _NEEDED.get(step.guarantee)
    if needed and not getattr(node, needed):
        raise _refused(
            f"$.steps[{step.position}].guarantee",
            f"is {step.guarantee}, which node {node.name} cannot give: it does not declare"
            f" {needed}=True",
        )


def _refused(where: str, reason: str) -> InvalidBlueprint:
    return InvalidBlueprint(f"{where} {reason}.", field=where)
