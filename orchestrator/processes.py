"""The credentials of each kind of process: those that it needs, and no others. Pure.

`isolane up` hands them down by this table, `deploy/README.md` shows it, and each process checks at its start for those
it cannot do without.
"""

from collections.abc import Mapping
from dataclasses import dataclass

DATABASE, OWNER, BROKER, CACHE = "DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "ISOLANE_CACHE_URL"  # fmt: skip
WORKERS_DATABASE = "DATABASE_WORKER_URL"  # workers get it as their DATABASE_URL
SIGNING, SEALING, FLOWER_LOGIN = "SECRET_KEY", "ENCRYPTION_KEYS", "FLOWER_PASSWORD"
CREDENTIALS = (DATABASE, OWNER, WORKERS_DATABASE, BROKER, CACHE, SIGNING, SEALING, FLOWER_LOGIN)
TENANTS_PREFIX = "ISOLANE_SECRET_"  # variables with secrets of tenants
CLIENTS_KEY = "ISOLANE_API_KEY"  # for the command only


@dataclass(frozen=True, kw_only=True)
class Process:
    """One kind of process."""

    name: str
    needs: tuple[str, ...]  # does not start without them
    uses: tuple[str, ...] = ()  # if they are set
    resolves_secrets: bool = False  # of tenants, from variables and files

    @property
    def credentials(self) -> tuple[str, ...]:
        """All credentials that it is given."""
        return (*self.needs, *self.uses)


WEB = Process(name="web", needs=(DATABASE, BROKER, SIGNING, SEALING))
WORKER = Process(
    name="worker", needs=(DATABASE, BROKER, SEALING), uses=(CACHE,), resolves_secrets=True
)
PROVISIONER = Process(name="provisioner", needs=(DATABASE, OWNER))
FLOWER = Process(name="flower", needs=(BROKER, FLOWER_LOGIN))
# Commands: submit, check remote servers, migrate.
OPERATOR = Process(
    name="operator",
    needs=(DATABASE, BROKER, SIGNING, SEALING),
    uses=(OWNER, WORKERS_DATABASE, CACHE, FLOWER_LOGIN),
)
PROCESSES = (WEB, WORKER, PROVISIONER, FLOWER, OPERATOR)


def without_credentials(environ: Mapping[str, str], process: Process) -> dict[str, str]:
    """Return the environment that a process may inherit: without credentials, in any form, that are not its own."""
    closed = {CLIENTS_KEY, *CREDENTIALS, *(f"{name}_FILE" for name in CREDENTIALS)}
    return {
        name: value
        for name, value in environ.items()
        if name not in closed and (process.resolves_secrets or not name.startswith(TENANTS_PREFIX))
    }
