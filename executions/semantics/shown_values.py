"""A step's parameters and a run's outputs as they may be shown. Pure."""

from collections.abc import Mapping
from typing import Any

from executions.blueprints.errors import BadReference
from executions.blueprints.expressions.resolution import evaluation_work, resolve
from executions.blueprints.work import Work
from executions.semantics.masking import MASK
from executions.semantics.memory import ExecutionMemory


def shown_values(
    memory: ExecutionMemory,
    declared: Mapping[str, Any],
    real: Mapping[str, Any],
    extra: Mapping[str, Any],
) -> Any:
    """Return the resolved values with everything sensitive masked.

    `declared` still has its references, `real` are the resolved values; `extra` are roots beside those of the memory.
    """
    if not memory.has_sensitive:
        return memory.masker.masked_items(real) if memory.masker.has_secrets else real
    scope = {**memory.shown_scope(), **extra}
    work = evaluation_work()
    resolved = {
        name: _mask_missing(_resolve_masked(value, scope, work), real[name])
        for name, value in declared.items()
    }
    return memory.masker.masked_items(resolved)


def _resolve_masked(value: Any, scope: Mapping[str, Any], work: Work) -> Any:
    try:
        return resolve(value, scope, work=work)
    except BadReference:  # a masked value may not fit the expression
        return MASK


def _mask_missing(shown: Any, real: Any) -> Any:
    """Mask values that are present in `real` but missing from `shown`."""
    if isinstance(shown, dict) and isinstance(real, dict):
        return {name: _mask_missing(value, real.get(name)) for name, value in shown.items()}
    if isinstance(shown, list) and isinstance(real, list) and len(shown) == len(real):
        return [_mask_missing(*pair) for pair in zip(shown, real, strict=True)]
    return MASK if shown is None and real is not None else shown
