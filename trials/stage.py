"""Servers, settings and tenants of the chaos and storm trials.

Timing: a long-running process of its own.
Model: sync, main thread.
Guarantee: unless the trial is killed, its servers stop and its directory is removed.
Failure: bubble; a server that does not start is named.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench import environment
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.stack import EmbeddedServers
from orchestrator.embedded.supervisor import Supervisor
from orchestrator.env import PROJECT_ROOT

if TYPE_CHECKING:
    from tenants.scope import TenantRef

QUOTA = 1000  # running executions of one tenant


@contextmanager
def prepared_servers(trial: str) -> Iterator[tuple[EmbeddedServers, Supervisor, Path]]:
    """Prepare servers in a new directory; the caller starts them, by this supervisor or by its own."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"isolane-{trial}-")))
        paths = EmbeddedPaths(folder / "home")
        stack.callback(paths.remove)
        servers = EmbeddedServers(paths, durable=False)
        servers.prepare()
        # Even if it starts nothing, it raises StopRequested on a signal.
        yield servers, stack.enter_context(Supervisor(paths.logs)), folder


def log_folder(chosen: Path | None, otherwise: Path) -> Path:
    """Create and return the directory for logs."""
    folder = chosen or otherwise
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def configure(servers: EmbeddedServers, *, nodes: str, **settings: str) -> None:
    """Point this process and its workers at the servers and the nodes of the trial, then set up Django."""
    clean = environment.clean(os.environ)
    os.environ.clear()
    os.environ.update(clean)
    os.environ.update(
        environment.platform(
            redis=servers.redis_url,
            login=servers.login_url,
            owner=servers.owner_url,
            secret_key=servers.secrets.django_secret_key,
            encryption_key=servers.secrets.encryption_key,
        )
    )
    os.environ.update(ISOLANE_NODE_PACKAGES=nodes, ISOLANE_NODE_PATHS=str(PROJECT_ROOT), **settings)
    from orchestrator.cli.support.django import setup_django  # noqa: PLC0415 - after the settings

    setup_django()


def create_tenants(
    trusted: Sequence[str], untrusted: Sequence[str], *, actor: str
) -> "tuple[list[TenantRef], list[TenantRef]]":
    """Migrate the database and create tenants; runs of those that are not trusted have the level `process`."""
    from tenants.provisioner import work_off  # noqa: PLC0415 - models need Django set up
    from tenants.provisioning import migrate  # noqa: PLC0415
    from tenants.selectors import tenant_by_schema  # noqa: PLC0415
    from tenants.services.tenants import create_tenant  # noqa: PLC0415

    migrate()
    for schema in (*trusted, *untrusted):
        create_tenant(schema=schema, trusted=schema in trusted, max_running=QUOTA, actor=actor)
    work_off()
    return list(map(tenant_by_schema, trusted)), list(map(tenant_by_schema, untrusted))
