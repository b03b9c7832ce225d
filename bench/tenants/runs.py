"""Runs of many tenants as a worker drives them: real statements in their scopes, a stub in place of the runtime.

Timing: minutes.
Model: sync; as many threads as a worker has slots, and one for admission.
Guarantee: best-effort; a run that does not succeed ends the benchmark.
Failure: bubble.
"""

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

from celery import Signature
from django.conf import settings
from django.db import connections
from django.db.models.functions import Now

from executions.models import Execution
from executions.placement.admission import admit
from executions.placement.chain import RUN_STEP, ChainTail
from executions.placement.dispatch import REMAINING
from executions.placement.models import Worker
from executions.placement.registry import register, store_catalogue
from executions.placement.run_scope import run_scope
from executions.services.publishing import publish
from executions.states import ExecutionState
from executions.submission.submit import RunRequest, submit
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from resources.placement import Placement
from resources.runtimes.stub import StubBackend, succeeds
from tenants.models import Tenant
from tenants.provisioner import work_off
from tenants.provisioning import migrate
from tenants.scope import TenantRef, keep_connections, login_scope, platform_scope, tenant_scope
from tenants.selectors import tenant_by_schema
from tenants.services.tenants import create_tenant

LEVEL, NODE, BLUEPRINT = "shared", "work", "flow"
STEPS = ("s1", "s2", "s3")
QUOTA = 10_000
REST: ChainTail = [Signature(RUN_STEP)]  # of a chain: links that nobody sends
SECONDS = 60.0


class MeasuredWorker:
    """Admission and links of a worker, without Celery, loops and runtimes."""

    def __init__(self) -> None:
        self._slots: int = settings.WORKER_CAPACITY
        backend = StubBackend(level=LEVEL, script={NODE: succeeds({"n": 1})})
        self._boot = WorkerBoot(node_name="bench", capacity=self._slots, backends={LEVEL: backend})
        self._boot.request_admission = lambda: None
        self._links = LinkRunner(self._boot)
        self._threads = ThreadPoolExecutor(self._slots)
        self._admission = ThreadPoolExecutor(1, initializer=keep_connections)
        self._ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        _register(self._boot, backend)

    def drain(self, runs: int) -> None:
        """Give free slots to waiting runs until so many have ended."""
        placed = ended = 0
        while ended < runs:
            if placed < runs:
                placed += self._admission.submit(self._admit).result(SECONDS)
            if error := self._ended.get(timeout=SECONDS):
                raise error
            ended += 1

    def _admit(self) -> int:
        """Place runs and read what is left of their chains, as admission does; begin them."""
        with login_scope():
            placements = admit()
            for placement in placements:
                with run_scope(placement.tenant_id):
                    REMAINING.fetch({"execution": placement.execution_id})
        for placement in placements:
            self._threads.submit(self._run, placement)
        return len(placements)

    def _run(self, placement: Placement) -> None:
        try:
            self._boot.renewed()
            for path in STEPS:
                task = f"{threading.get_ident()}-{path}"
                self._links.begin(task, placement, path)
                self._links.run(task, path, REST)
                self._links.end(task)
        except BaseException as error:  # noqa: BLE001 - raised by `drain`
            self._ended.put(error)
        else:
            self._ended.put(None)


def _register(boot: WorkerBoot, backend: StubBackend) -> None:
    with platform_scope():
        Worker.objects.all().delete()  # of the measurement before
        register(
            boot=boot.id,
            node_name=boot.node_name,
            lane=boot.lane,
            capacity=boot.capacity,
            levels=[LEVEL],
            catalogue=store_catalogue(backend.describe()),
        )
        Worker.objects.update(lease_until=Now() + timedelta(days=1))


def make_tenants(number: int) -> list[TenantRef]:
    """Return so many tenants with a blueprint each; those that are missing are made."""
    migrate()
    names = [f"tenant{index:05}" for index in range(number)]
    with platform_scope():
        there = set(Tenant.objects.values_list("schema_name", flat=True))
    missing = [name for name in names if name not in there]
    for name in missing:
        create_tenant(schema=name, trusted=True, max_running=QUOTA, actor="bench")
    work_off()
    tenants = [tenant_by_schema(name) for name in names]
    for tenant in tenants:
        if tenant.schema in missing:
            _publish(tenant)
    connections["owner"].close()
    return tenants


def _publish(tenant: TenantRef) -> None:
    steps = [{"key": key, "uses": NODE} for key in STEPS]
    with tenant_scope(tenant):
        publish({"name": BLUEPRINT, "steps": steps})


def submit_runs(tenants: Sequence[TenantRef]) -> list[tuple[TenantRef, UUID]]:
    """Submit one run for each of these tenants."""
    request = RunRequest(blueprint=BLUEPRINT, inputs={}, requested_by="bench")
    return [(tenant, submit(tenant, request).execution.pk) for tenant in tenants]


def check(submitted: Sequence[tuple[TenantRef, UUID]]) -> None:
    """Raise an error if a run did not succeed: a fast failure is not a fast run."""
    for tenant, run_id in submitted:
        with tenant_scope(tenant):
            run = Execution.objects.get(pk=run_id)
        if run.state != ExecutionState.SUCCEEDED:
            raise RuntimeError(f"{run} is {run.state}: {run.code} {run.message}")
