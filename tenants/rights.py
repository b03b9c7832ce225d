"""Rights of web's login, workers and tenants' roles on a shared table, declared beside its model."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True, slots=True)
class DatabaseRights:
    """Rights in PostgreSQL's words; none unless named. The platform role has all rights everywhere in public."""

    login: tuple[str, ...] = ()  # web's login, outside of every scope
    tenant: tuple[str, ...] = ()
    worker: tuple[str, ...] = ()  # the workers' platform role; their login itself has none
    worker_changes: str = ""  # a condition on the rows that workers may change, if not all
    worker_sequences: tuple[str, ...] = ()  # sequences that workers use


NO_RIGHTS = DatabaseRights()

# Tables of packages, which cannot carry a declaration: those needed to sign in.
PACKAGE_TABLES = {
    "django_session": DatabaseRights(login=("SELECT", "INSERT", "UPDATE", "DELETE")),
}


class HasRights:
    """A model of a shared app that declares the rights on its table."""

    database_rights: ClassVar[DatabaseRights] = NO_RIGHTS
