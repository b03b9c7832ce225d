"""A run without its data, for those who may see its state and not its contents. Pure."""

from dataclasses import replace
from typing import Any

from executions.explain.status import RunStatus
from executions.states import ExecutionState

# Fields of a run and of its steps that may hold a tenant's data.
WITHHELD = frozenset({"inputs", "output", "outputs", "variables", "question", "message", "cause"})
# Names in an event's data whose values the platform itself writes.
EVENT_DATA = frozenset({
    "approval", "attempt", "by", "closed", "code", "definition", "epoch", "fraction", "last_log", "lines", "ms",
    "number", "port", "reason", "received", "recovering", "refused", "retry_s", "sent", "unbilled", "until", "wake_s",
    "what", "worker",
})  # fmt: skip


def run_without_data(body: dict[str, Any]) -> dict[str, Any]:
    """Return a rendered run without inputs, outputs and messages of its steps."""
    shown = _without_data(body)
    if _is_platform_message(body["state"], body["code"]):
        shown["message"] = body["message"]
    return {**shown, "steps": [_without_data(step) for step in body["steps"]]}


def event_without_data(event: dict[str, Any]) -> dict[str, Any]:
    """Return a rendered event with the platform's own values only."""
    data = {name: value for name, value in event["data"].items() if name in EVENT_DATA}
    return {**event, "data": data}


def status_without_data(run: RunStatus) -> RunStatus:
    """Return a run's status without questions and messages of its steps."""
    message = run.message if _is_platform_message(run.state, run.code) else ""
    return replace(run, message=message, question="")


def _is_platform_message(state: str, code: str) -> bool:
    """Return True if the platform wrote the message: the reason to wait is; the reason of an end may be a step's."""
    return state == ExecutionState.QUEUED and not code


def _without_data(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in WITHHELD}
