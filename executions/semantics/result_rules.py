"""Rules that a step's result must keep before it is stored. Pure."""

from executions.blueprints.plan import Guarantee, PlannedStep
from executions.semantics.active_run import ActiveRun
from executions.semantics.canonical_json import loads
from isolane.protocol import dump
from isolane.results import Code, StepResult


def broken_rule(
    run: ActiveRun, step: PlannedStep, result: StepResult, output: bytes
) -> tuple[Code, str] | None:
    """Return code and message of the first rule that a successful result breaks; None if it keeps all.

    `output` is the step's output as JSON.
    """
    if excess := run.memory.excess(step.path, output, result.variables):
        return Code.OUTPUT_TOO_LARGE, excess
    if leak := _leak(run, result, output):
        return Code.POLICY_VIOLATION, leak
    asks = bool(result.question)
    if (
        step.guarantee is Guarantee.DETERMINISTIC
        and not asks
        and _differs_from_original(run, step, output)
    ):
        return (
            Code.POLICY_VIOLATION,
            "The step is declared deterministic, but its output differs from the original run's.",
        )
    return None


def _leak(run: ActiveRun, result: StepResult, output: bytes) -> str:
    """Return a message if a resource's secret would be stored; guards against accidents, not against malice."""
    masker = run.memory.masker
    if not masker.has_secrets:
        return ""
    kept = {"output": output.decode()}
    if result.variables:
        kept["variables"] = dump(result.variables).decode()
    found = [name for name, text in kept.items() if masker.holds_secret(text)]
    if not found:
        return ""
    contain = "contains" if len(found) == 1 else "contain"
    return f"The step's {' and '.join(found)} {contain} a secret of a resource; nothing of it was kept."


def _differs_from_original(run: ActiveRun, step: PlannedStep, output: bytes) -> bool:
    if run.original is None or step.path not in run.original:
        return False
    return bool(run.original[step.path] != loads(output))
