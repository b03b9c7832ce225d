"""Being a worker in the test's own process, as PostgreSQL sees it."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections
from psycopg.conninfo import conninfo_to_dict

from tenants.postgresql.base import DatabaseWrapper
from tenants.scope import ALIAS
from tests.plugin import SERVERS


@contextmanager
def as_worker() -> Iterator[None]:
    """Log in as workers do until the block ends."""
    named = conninfo_to_dict(SERVERS.worker_url)
    before = connections[ALIAS]
    options = {
        name: said for name, said in before.settings_dict["OPTIONS"].items() if name != "pool"
    }
    login = {"USER": named["user"], "PASSWORD": named["password"], "OPTIONS": options}
    connections[ALIAS] = worker = DatabaseWrapper({**before.settings_dict, **login}, ALIAS)
    try:
        yield
    finally:
        worker.close()
        connections[ALIAS] = before
