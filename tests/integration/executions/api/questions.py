"""Runs that ask a person: a worker without Celery has run them up to their question, and holds nothing of them."""

import threading
from typing import Any

from executions.services.publishing import publish
from executions.submission.submit import RunRequest, submit
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from isolane.protocol import Run
from isolane.results import StepResult
from resources.runtimes.base import OnFrame
from resources.runtimes.stub import succeeds
from tenants.scope import TenantRef, tenant_scope
from tests.factories import WORK, make_boot, place
from tests.integration.executions.worker.driving import drive

ASK = "ask"
HOUR = 3_600.0
STEPS = [
    {"key": "approve", "uses": ASK},
    {"key": "pay", "uses": WORK, "when": "${steps.approve.approved}"},
]


def asks(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
    """A node that asks a person."""
    return StepResult.succeeded(
        step=run.step,
        attempt=run.attempt,
        output=None,
        pause_s=HOUR,
        question=run.parameters.get("prompt", "Pay?"),
    )


def asking_boot() -> WorkerBoot:
    """A worker that offers it."""
    return make_boot(script={WORK: succeeds({"n": 1}), ASK: asks})


def ask(
    tenant: TenantRef,
    boot: WorkerBoot,
    *,
    blueprint: str = "payments",
    given: dict[str, Any] | None = None,
    **fields: Any,
) -> str:
    """A run of the tenant that is suspended at its first question; its id."""
    with tenant_scope(tenant):
        version = publish({"name": blueprint, "steps": STEPS, **fields}).number
    run = submit(
        tenant,
        RunRequest(blueprint=blueprint, version=version, inputs=given or {}, requested_by="tests"),
    ).execution
    suspended = drive(tenant, LinkRunner(boot), place(tenant, run.id, boot))
    assert suspended.state == "suspended"
    return run.public_id
