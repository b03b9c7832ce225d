"""A remote server in memory with its issuer: what really exists there, as opposed to what the ledger says."""

from collections.abc import Sequence
from typing import Any, ClassVar

from executions.models import ResourceRecord
from executions.worker.boot import WorkerBoot
from isolane.protocol import Grant, Resource, ResourceEvent, Run
from isolane.results import StepResult
from resources.issuers.base import Credential, IssueError, Issuer, ResourceRequest
from resources.ledger.models import IssuedCredential
from resources.models import ResourceDefinition
from resources.placement import Placement
from resources.runtimes.stub import Behaviour, StubBackend
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import start


class FakeRemote(Issuer):
    """Refuses while it is away."""

    type: ClassVar[str] = "cache"

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.away = False
        self.unreachable = ""  # of this definition's server nobody hears
        self.key, self.host = "of the administrator", "the server"
        self.password = "issued-password"
        self.seen: list[str] = []

    def plan(self, request: ResourceRequest) -> Sequence[Credential]:
        remote_id = f"{request.execution_id}/{request.epoch}/{request.definition}"
        return [
            Credential(
                kind="cache.user", remote_id=remote_id, data={"key": self.key, "host": self.host}
            )
        ]

    def issue(self, request: ResourceRequest, credentials: Sequence[Credential]) -> Grant:
        if request.definition == self.unreachable:
            raise IssueError("no route", nothing_made=True)
        self._answer("issue")
        self.there |= {credential.remote_id for credential in credentials}
        return request.grant(secrets={"password": self.password})

    def revoke(self, credential: Credential) -> None:
        self._answer("revoke")
        if credential.data["key"] != self.key or credential.data["host"] != self.host:
            raise IssueError("revoke: wrong key, or nobody there")
        self.there.discard(credential.remote_id)

    def _answer(self, asked: str) -> None:
        self.seen.append(asked)
        if self.away:
            raise IssueError(f"{asked}: the remote server is away")


def define(tenant: TenantRef, name: str = "scratch", scope: str = "execution") -> None:
    """A definition of the tenant, as its service would store it."""
    with tenant_scope(tenant):
        ResourceDefinition.objects.create(
            name=name, type="cache", config={}, secrets={}, scope=scope
        )


def handle(number: int, epoch: int) -> str:
    """The id of a handle; none is used twice."""
    return f"cache_{epoch:016x}{number:016x}"


def says(backend: StubBackend, *events: tuple[ResourceEvent, int]) -> Behaviour:
    """A node that opens and closes handles of the resource `tmp`, as the runtime tells it."""

    def run(run: Run, cancelled: object, on_frame: object) -> StepResult:
        runtime = backend.runtimes[-1]
        for event, number in events:
            resource_id = handle(number, runtime.placement.epoch)
            runtime.on_resource(
                Resource(event=event, name="tmp", resource_id=resource_id, step=run.step)
            )
        return StepResult.succeeded(step=run.step, attempt=run.attempt, output=None)

    return run


TMP = {"tmp": {"type": "cache", "definition": "scratch"}}


def begin(tenant: TenantRef, boot: WorkerBoot, *uses: str, **fields: Any) -> Placement:
    """A placed run of steps that use these nodes, with the resource `tmp` unless said otherwise."""
    steps = [{"uses": node} for node in uses]
    return start(tenant, boot, *steps, resources=fields.pop("resources", TMP), **fields)


def records(tenant: TenantRef) -> list[tuple[str, str, int]]:
    """Type, end and epoch of all that the tenant's runs had."""
    with tenant_scope(tenant):
        found = ResourceRecord.objects.order_by("id").values_list("type", "ended", "epoch")
        return list(found)


def issued() -> int:
    """Count the credentials in the ledger."""
    with platform_scope():
        return IssuedCredential.objects.count()
