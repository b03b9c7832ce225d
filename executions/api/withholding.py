"""A run without its data: what is left for those who may know how it stands and may not look into it. Pure."""

from dataclasses import replace
from typing import Any

from executions.explain.status import RunStatus
from executions.states import ExecutionState

# Of a run and of its steps: what may hold a tenant's data.
WITHHELD = frozenset({"inputs", "output", "outputs", "variables", "question", "message", "cause"})
# Of an event: what the platform itself says.
EVENT_DATA = frozenset({
    "approval", "attempt", "by", "code", "epoch", "fraction", "last_log", "lines", "ms", "reason", "recovering",
    "retry_s", "unbilled", "until", "wake_s", "what", "worker",
})  # fmt: skip


def run_without_data(body: dict[str, Any]) -> dict[str, Any]:
    """A run as it is rendered, without what steps were given, gave back or said."""
    shown = _without_data(body)
    if _is_platforms_word(body["state"], body["code"]):
        shown["message"] = body["message"]
    return {**shown, "steps": [_without_data(step) for step in body["steps"]]}


def event_without_data(event: dict[str, Any]) -> dict[str, Any]:
    """An event as it is rendered, with the platform's own words only."""
    data = {name: value for name, value in event["data"].items() if name in EVENT_DATA}
    return {**event, "data": data}


def standing_without_data(run: RunStatus) -> RunStatus:
    """How a run stands, without what steps asked or said."""
    message = run.message if _is_platforms_word(run.state, run.code) else ""
    return replace(run, message=message, question="")


def _is_platforms_word(state: str, code: str) -> bool:
    """Of a message. Why a run waits is; how it ends may be a step's, and is known before its context is gone."""
    return state == ExecutionState.QUEUED and not code


def _without_data(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in WITHHELD}
