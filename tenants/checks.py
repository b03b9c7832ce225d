"""Django system checks of the database logins."""

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from psycopg.conninfo import conninfo_to_dict

OWNER_IS_LOGIN = "isolane.E004"
OTHER_DATABASE = "isolane.E005"
WORKER_IS_WEB = "isolane.W001"
OWNER, WORKER = "DATABASE_OWNER_URL", "DATABASE_WORKER_URL"


@register(Tags.security)
def check_logins(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Refuse the owner as a login of web or workers: row-level security does not bind it."""
    web, owner, worker = _user("default"), _user("owner"), _worker().get("user", "")
    found: list[CheckMessage] = [
        Error(
            f"{variable} and {OWNER} have the same login {owner!r}; no policy of the database binds the owner.",
            hint="Name a login role of its own; 'isolane migrate' creates it.",
            id=OWNER_IS_LOGIN,
        )
        for variable, user in (("DATABASE_URL", web), (WORKER, worker))
        if owner and user == owner
    ]
    if worker and worker == web:
        found.append(
            checks.Warning(
                f"{WORKER} and DATABASE_URL have the same login {web!r}: workers may do all that web may.",
                hint="Name a login role of its own; 'isolane migrate' creates it.",
                id=WORKER_IS_WEB,
            )
        )
    return found


@register(Tags.security)
def check_database_names(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Refuse logins to different databases; only users and passwords may differ."""
    web = _database("default")
    return [
        Error(
            f"{variable} names the database {name!r}, DATABASE_URL {web!r}; only user and password may differ.",
            id=OTHER_DATABASE,
        )
        for variable, name in ((OWNER, _database("owner")), (WORKER, _worker().get("dbname", web)))
        if name and name != web
    ]


def _user(alias: str) -> str:
    return str(settings.DATABASES.get(alias, {}).get("USER", ""))


def _database(alias: str) -> str:
    return str(settings.DATABASES.get(alias, {}).get("NAME", ""))


def _worker() -> dict[str, Any]:
    """Return the parts of DATABASE_WORKER_URL; none if it is not set."""
    return conninfo_to_dict(settings.ENV.database_worker_url)
