"""Which rights web's login, workers and the tenants' roles have on a shared table, declared beside its model."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True, slots=True)
class DatabaseRights:
    """Rights in PostgreSQL's words; none unless named. The platform role has all of them everywhere in public."""

    login: tuple[str, ...] = ()  # of web, outside of every scope
    tenant: tuple[str, ...] = ()
    worker: tuple[str, ...] = ()  # in the platform role of workers; their login alone has none
    worker_changes: str = ""  # which rows workers may change, if not all
    worker_sequences: tuple[str, ...] = ()  # beside the table, which workers count up


NO_RIGHTS = DatabaseRights()

# Tables of packages, which cannot carry a declaration: what signing in needs.
PACKAGE_TABLES = {
    "django_session": DatabaseRights(login=("SELECT", "INSERT", "UPDATE", "DELETE")),
}


class HasRights:
    """A model of a shared app that says who may touch its table."""

    database_rights: ClassVar[DatabaseRights] = NO_RIGHTS
