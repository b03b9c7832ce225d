"""Find what is left behind when runs have ended: at the remotes, in the ledger and on the machine.

Timing: some milliseconds, and a walk over all processes.
Model: sync.
Guarantee: idempotent; it only reads.
Failure: bubble; a remote that does not answer proves nothing.
"""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import redis

from executions.models import Execution, ResourceRecord
from executions.placement.models import Ticket
from executions.states import TERMINAL_EXECUTION
from foundation.process_states import ENDED
from resources.issuers.remote_postgres import APPLICATION
from resources.ledger.models import IssuedCredential
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.customer import Customer
from tests.recorder import Recorder
from trials.sandboxes import is_sandboxed

_ID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_CREATED_ROLE = re.compile(r'CREATE ROLE "(iso_\w+)"')
_SESSIONS = """
SELECT pid, usename, application_name, state FROM pg_stat_activity
 WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND application_name <> %s
"""


@dataclass(frozen=True, kw_only=True)
class Remotes:
    """All servers that the runs use; nothing else uses them."""

    customer: Customer
    recorder: Recorder
    cache: "redis.Redis"  # as administrator

    def left(self) -> list[str]:
        """Find every connection, role, user and key that is not a worker's or this program's."""
        return [*self._at_postgres(), *self._at_cache(), *self._at_recorder()]

    def created_roles(self) -> set[str]:
        """Return the roles that were ever created, by the log of the server."""
        return {
            found[1]
            for line in self.customer.log_lines("CREATE ROLE")
            if (found := _CREATED_ROLE.search(line))
        }

    def _at_postgres(self) -> Iterator[str]:
        with self.customer.connect() as connection:
            for row in connection.execute(_SESSIONS, [APPLICATION]).fetchall():
                yield "session {pid} of {usename}, {application_name!r}, {state}".format(**row)
        for role in self.customer.roles("iso_"):
            yield f"role {role}"

    def _at_cache(self) -> Iterator[str]:
        own = self.cache.client_id()
        for client in self.cache.client_list():
            if int(client["id"]) != own and client["name"] != APPLICATION:
                yield "client {id} of the cache, user {user}, {name!r}".format(**client)
        for user in map(str, self.cache.acl_users()):
            if user != "default":
                yield f"cache user {user}"
        for key in self.cache.scan_iter(count=1000):
            yield f"cache key {key!s}"

    def _at_recorder(self) -> Iterator[str]:
        with self.recorder.lock:
            tags = {
                request.client_port: request.headers.get("user-agent", "")
                for request in self.recorder.requests
            }
            still = list(self.recorder.connections)
        for port in still:
            yield f"HTTP connection from port {port}, {tags.get(port, 'without a request')!r}"


def in_the_ledger(tenants: Sequence[TenantRef]) -> list[str]:
    """Find runs that have not ended, and records and grants without an end.

    What the sweeper has revoked stays in `IssuedCredential` for a second check; it no longer exists at the remote.
    """
    found = []
    for tenant in tenants:
        with tenant_scope(tenant):
            unfinished = Execution.objects.exclude(state__in=sorted(TERMINAL_EXECUTION))
            found += [f"run {run.pk} of {tenant.schema} is {run.state}" for run in unfinished]
            still_open = ResourceRecord.objects.filter(closed_at__isnull=True)
            found += [f"record {one} of run {one.execution_id}" for one in still_open]
    with platform_scope():
        found += [f"ticket of {ticket.execution_id}" for ticket in Ticket.objects.all()]
        found += [
            f"issued {one}, {one.sweeps} tries"
            for one in IssuedCredential.objects.filter(swept=False)
        ]
    return found


def unrecorded(roles: Set[str], tenants: Sequence[TenantRef]) -> list[str]:
    """Find roles that no ledger has."""
    known: set[str] = set()
    for tenant in tenants:
        with tenant_scope(tenant):
            recorded = ResourceRecord.objects.filter(type="database.role")
            known |= set(recorded.values_list("resource_id", flat=True))
    return [f"role {role} is in no ledger" for role in sorted(roles - known)]


def on_the_machine(folder: Path, workers: Sequence[int]) -> list[str]:
    """Find processes of steps: all with a home below the folder, except the zygotes and idle runners of these workers.

    An idle runner is a child of a zygote outside of any sandbox; a sandbox is never idle.
    """
    below = {about["pid"]: about for about in _processes_below(folder)}
    zygotes = {
        pid
        for pid, about in below.items()
        if about["ppid"] in workers and "isolane.zygote" in about["cmdline"]
    }
    return [
        f"process {pid} below {about['ppid']}: {about['cmdline']}"
        for pid, about in below.items()
        if pid not in zygotes and (about["ppid"] not in zygotes or is_sandboxed(pid))
    ]


def _processes_below(folder: Path) -> Iterator[dict[str, Any]]:
    for process in psutil.process_iter(["pid", "ppid", "environ", "cmdline", "status"]):
        about = process.info
        home = (about["environ"] or {}).get("HOME", "")
        if home.startswith(f"{folder}/") and about["status"] not in ENDED:
            yield about


def executions_in(lines: Sequence[str]) -> dict[UUID, str]:
    """Return the executions that these lines name, each with one line."""
    return {UUID(found[0]): line for line in lines if (found := _ID.search(line))}
