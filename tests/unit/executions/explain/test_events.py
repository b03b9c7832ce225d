"""Each kind of event is one sentence; unknown or hidden data makes it shorter, never wrong."""

import re
from pathlib import Path
from typing import Any

import pytest

from executions.explain.events import ENDING, SENTENCES, describe_event
from executions.states import ExecutionState, StepState

TRANSITIONS = Path(__file__).parents[4] / "executions" / "transitions"
_KIND = re.compile(r"['\"]((?:execution|step|placement|context|connection|fence)\.[a-z_]+)['\"]")
UNTIL = "2026-03-04T10:02:11.5+00:00"
API = {"epoch": 1, "number": 1, "host": "api.example.com", "port": 443, "definition": "billing-api"}
NOT_BILLED = "What this attempt cost is not billed."

CASES: list[tuple[str, str, dict[str, Any], str]] = [
    # --- of the run
    ("execution.queued", "", {}, "Submitted."),
    (
        "execution.queued", "", {"reason": "wake_time"},
        "The run waits for a slot: its time has come.",
    ),
    (
        "execution.queued", "", {"reason": "rejected"},
        "The question was rejected; the run waits for a slot.",
    ),
    (
        "execution.queued", "", {"reason": "expired"},
        "Nobody answered in time; the run waits for a slot.",
    ),
    (
        "execution.waiting", "", {"epoch": 1, "reason": "parked", "until": UNTIL},
        "The run waits without a slot until 2026-03-04 10:02:11 UTC. (placement 1 ended)",
    ),
    ("execution.waiting", "", {"reason": "expired"}, "The run waits without a slot."),
    (
        "execution.suspended", "approve", {"epoch": 1, "until": UNTIL, "by": "w2@host"},
        ("The run waits without a slot until 2026-03-04 10:02:11 UTC for a person's answer to step approve."
        " (placement 1 ended by w2@host)"),
    ),
    ("execution.succeeded", "", {"epoch": 3}, "The run succeeded. (placement 3 ended)"),
    (
        "execution.succeeded", "", {"reason": "wake_time"},
        "The run succeeded (its time has come).",
    ),
    (
        "execution.failed", "", {"code": "CATALOGUE_MISSING"},
        "The run failed with CATALOGUE_MISSING.",
    ),
    ("execution.timed_out", "", {"epoch": 1}, "The run timed out. (placement 1 ended)"),
    ("execution.cancelled", "", {"code": "CANCELLED"}, "The run was cancelled."),
    ("execution.cancel_requested", "", {"actor": "ann"}, "ann asked to cancel the run."),
    ("execution.cancel_requested", "", {}, "Somebody asked to cancel the run."),
    # --- of its steps
    (
        "step.started", "pay", {"attempt": 1, "epoch": 1, "worker": "w1@host"},
        "Step pay began (attempt 1).",
    ),
    (
        "step.succeeded", "pay", {"attempt": 1, "ms": 120, "last_log": 3},
        "Step pay succeeded after 120 ms.",
    ),
    (
        "step.succeeded", "nap", {"attempt": 1, "ms": 2, "wake_s": 3600.0},
        "Step nap succeeded after 2 ms. The run pauses for 1 h.",
    ),
    (
        "step.succeeded", "pay", {"attempt": 2, "ms": 10, "code": "TIMEOUT"},
        "Step pay, which had failed with TIMEOUT, was recovered after 10 ms.",
    ),
    (
        "step.succeeded", "approve", {"attempt": 1, "approval": 2, "actor": "ann"},
        "Step approve succeeded with the answer to question 2, given by ann.",
    ),
    (
        "step.failed", "pay", {"attempt": 3, "code": "TIMEOUT", "ms": 30_000},
        "Step pay failed with TIMEOUT after 30 s (attempt 3).",
    ),
    (
        "step.failed", "pay", {"attempt": 1, "code": "OUTCOME_UNKNOWN", "unbilled": True},
        f"Step pay failed with OUTCOME_UNKNOWN (attempt 1). {NOT_BILLED}",
    ),
    (
        "step.failed", "approve", {"attempt": 1, "code": "TIMEOUT", "approval": 1},
        "Step approve, whose question 1 nobody answered, failed with TIMEOUT (attempt 1).",
    ),
    (
        "step.retrying", "pay", {"attempt": 1, "code": "TRANSIENT_ERROR", "ms": 7, "retry_s": 1.388},
        "Step pay failed with TRANSIENT_ERROR after 7 ms (attempt 1) and is retried in 1.4 s.",
    ),
    (
        "step.retrying", "pay", {"attempt": 5, "code": "RATE_LIMIT_ERROR", "retry_s": 83.3, "wake_s": 83.3},
        "Step pay failed with RATE_LIMIT_ERROR (attempt 5) and is retried in 1.4 min, without a slot until then.",
    ),
    (
        "step.retrying", "pay", {"attempt": 1, "code": "TIMEOUT", "retry_s": 0.0, "recovering": True},
        "Step pay failed with TIMEOUT (attempt 1); its recovery node runs next.",
    ),
    (
        "step.suspended", "approve", {"attempt": 1, "ms": 3, "wake_s": 172_800.0},
        "Step approve asks a person and waits at most 2 days for the answer.",
    ),
    ("step.skipped", "pay", {"attempt": 1}, "Step pay was skipped: its condition did not hold."),
    (
        "step.cancelled", "pay", {"attempt": 1, "code": "CANCELLED", "unbilled": True},
        f"Step pay was cancelled (attempt 1). {NOT_BILLED}",
    ),
    ("step.log", "pay", {"attempt": 1, "lines": 1, "last_log": 1}, "Step pay wrote 1 line of log."),
    ("step.log", "pay", {"attempt": 1, "lines": 2, "last_log": 3}, "Step pay wrote 2 lines of log."),
    (
        "step.progress", "pay", {"attempt": 1, "fraction": 0.5, "message": "half\nway"},
        "Step pay is at 50%: half way.",
    ),
    ("step.progress", "pay", {"attempt": 1, "fraction": 0.5}, "Step pay is at 50%."),
    # --- of its placements
    (
        "placement.began", "", {"epoch": 1, "worker": "w1@host"},
        "Placed on w1@host (placement 1).",
    ),
    (
        "placement.lost", "pay",
        {"epoch": 1, "reason": "worker_lost", "worker": "w1@host", "by": "w2@host", "unbilled": True},
        ("The worker w1@host was lost; step pay was interrupted and will run again."
        f" {NOT_BILLED} (placement 1 ended by w2@host)"),
    ),
    (
        "placement.lost", "pay", {"epoch": 1, "reason": "worker_lost", "worker": "w1@host"},
        "The worker w1@host was lost; step pay will still be retried. (placement 1 ended)",
    ),
    (
        "placement.lost", "", {"epoch": 4, "reason": "claim_unattended", "worker": "w1@host"},
        "The worker w1@host lost the run (a step was claimed, and no thread ran it). (placement 4 ended)",
    ),
    (
        "placement.handed_over", "", {"epoch": 1, "reason": "worker_draining", "worker": "w1@host"},
        "The worker w1@host handed the run over (the worker was draining). (placement 1 ended)",
    ),
    (
        "placement.handed_over", "pay",
        {"epoch": 1, "reason": "worker_stopped", "worker": "w1@host", "unbilled": True},
        ("The worker w1@host handed the run over (the worker was stopped);"
        " step pay was interrupted and will run again."
        f" {NOT_BILLED} (placement 1 ended)"),
    ),
    (
        "placement.ended", "pay", {"epoch": 1, "reason": "worker_lost", "unbilled": True},
        ("The placement ended: the worker was lost; step pay was interrupted and will run again."
        f" {NOT_BILLED} (placement 1 ended)"),
    ),
    (
        "context.restarted", "", {"epoch": 2, "reason": "runtime_ended"},
        "The run goes on in a new context on the same worker, since its runtime ended (placement 2).",
    ),
    (
        "connection.closed", "", {**API, "sent": 512, "received": 14_020, "ms": 1200, "reason": "closed"},
        ("A connection to api.example.com:443 (billing-api) ended after 1.2 s:"
        " 512 bytes sent, 14 kB received."),
    ),
    (
        "connection.closed", "", {**API, "sent": 1, "received": 0, "ms": 60_000, "reason": "idle"},
        ("A connection to api.example.com:443 (billing-api) ended after 1 min, since nothing was sent for as long"
         " as the limit idle_seconds of blueprint or quota allows:"
        " 1 byte sent, 0 bytes received."),
    ),
    (
        "connection.refused", "", {"host": "evil.example.com", "port": 443, "reason": "not_declared"},
        "A connection to evil.example.com:443 was refused: no resource of this run has this name.",
    ),
    (
        "connection.refused", "", {"host": "evil.example.com", "port": 0, "reason": "not_declared"},
        "A lookup of evil.example.com was refused: no resource of this run has this name.",
    ),
    (
        "connection.refused", "", {"definition": "billing-api", "port": 443, "reason": "login"},
        "A connection to port 443 (billing-api) was refused: the remote server refused the login.",
    ),
    (
        "connection.omitted", "", {"epoch": 1, "number": 201, "closed": 1, "refused": 57},
        "Not listed one by one: 1 connection and 57 refusals more.",
    ),
    (
        "connection.omitted", "", {"epoch": 1, "number": 4, "closed": 0, "refused": 2},
        "Not listed one by one: 2 refusals more.",
    ),
    (
        "fence.refused", "pay", {"epoch": 1, "worker": "w1@host", "what": "checkpoint"},
        ("w1@host, which no longer held the run, wanted to write a checkpoint of step pay and was refused"
        " (placement 1)."),
    ),
    (
        "fence.refused", "", {"epoch": 1, "worker": "w1@host", "what": "checkpoint"},
        "w1@host, which no longer held the run, wanted to write a checkpoint and was refused (placement 1).",
    ),
    (
        "fence.refused", "pay", {"epoch": 1, "worker": "w1@host", "what": "claim"},
        "w1@host, which no longer held the run, wanted to begin step pay and was refused (placement 1).",
    ),
    (
        "fence.refused", "", {"epoch": 1, "worker": "w1@host", "what": "close"},
        "w1@host, which no longer held the run, wanted to end it and was refused (placement 1).",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "step", "data", "text"), CASES)
def test_an_event_is_told(kind: str, step: str, data: dict[str, Any], text: str) -> None:
    assert describe_event(kind, step, data) == text


def test_every_kind_is_told_here() -> None:
    assert {kind for kind, *_ in CASES} == set(SENTENCES)
    assert set(SENTENCES) >= ENDING


def test_every_kind_that_is_written_is_known() -> None:
    texts = [file.read_text(encoding="utf-8") for file in sorted(TRANSITIONS.glob("*.py"))]
    written = {kind for text in texts for kind in _KIND.findall(text)}
    # States become kinds in the statements themselves.
    written |= {f"execution.{state}" for state in ExecutionState} - {"execution.running"}
    written |= {f"step.{state}" for state in StepState} - {"step.pending", "step.running"}
    assert "step.started" in written
    assert written <= set(SENTENCES)


@pytest.mark.parametrize(
    ("step", "text"), [("pay", "pay.reversed, step pay."), ("", "pay.reversed.")]
)
def test_an_unknown_kind_is_named(step: str, text: str) -> None:
    assert describe_event("pay.reversed", step, {"whatever": [1]}) == text


@pytest.mark.parametrize("kind", sorted(SENTENCES))
@pytest.mark.parametrize("step", ["", "pay"])
@pytest.mark.parametrize("data", [{}, {"until": 3, "ms": "x", "fraction": None, "retry_s": None}])
def test_missing_or_odd_data_is_left_out(kind: str, step: str, data: dict[str, Any]) -> None:
    described = describe_event(kind, step, data)
    assert described.endswith(".")
    assert "None" not in described
