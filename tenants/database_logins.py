"""The roles that web and workers log in as: created if missing, refused if they have too many rights."""

from dataclasses import dataclass, field

from django.conf import settings
from django.db.backends.utils import CursorWrapper
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tenants.grants import grant_membership
from tenants.names import platform_role, tenant_role, worker_platform_role
from tenants.owner import OwnerNeeded

MEMBERS = """
SELECT m.rolname FROM pg_auth_members a JOIN pg_roles r ON r.oid = a.roleid JOIN pg_roles m ON m.oid = a.member
WHERE r.rolname = %s AND m.rolcanlogin AND m.rolname <> current_user ORDER BY m.rolname"""
NOT_ENTERED = """
SELECT t.id FROM tenants_tenant t JOIN pg_roles r ON r.rolname = current_database() || '_t_' || t.id
WHERE NOT pg_has_role(%s, r.oid, 'MEMBER') ORDER BY t.id"""


@dataclass(frozen=True, kw_only=True)
class DatabaseLogin:
    """A role with a password, and the variable that names it."""

    user: str
    password: str = field(repr=False)
    variable: str
    platform: str  # the other login's platform role, which it must not be a member of


def web_login() -> DatabaseLogin:
    """Return web's login, from DATABASE_URL of the process that changes schemas and roles."""
    named = settings.DATABASES["default"]
    return DatabaseLogin(
        user=str(named["USER"]),
        password=str(named["PASSWORD"]),
        variable="DATABASE_URL",
        platform=worker_platform_role(_database()),
    )


def worker_login() -> DatabaseLogin | None:
    """Return the login of DATABASE_WORKER_URL; None if workers log in as web does."""
    named = conninfo_to_dict(settings.ENV.database_worker_url)
    user = str(named.get("user", ""))
    if user in {"", web_login().user}:
        return None
    return DatabaseLogin(
        user=user,
        password=str(named.get("password", "")),
        variable="DATABASE_WORKER_URL",
        platform=platform_role(_database()),
    )


def logins(cursor: CursorWrapper) -> list[str]:
    """Return all roles that enter tenants, read from the database: a provisioner is not given the workers' login."""
    return [web_login().user, *_members(cursor, worker_platform_role(_database()))]


def ensure_login(cursor: CursorWrapper, login: DatabaseLogin) -> None:
    """Create a login role unless it exists; refuse one that would see more than it should."""
    user = login.user
    cursor.execute(
        "SELECT rolinherit, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = %s", [user]
    )
    row = cursor.fetchone()
    if row is None:
        # Hashed here, so that the password is in no log and no statistics of the server.
        hashed = cursor.connection.pgconn.encrypt_password(login.password.encode(), user.encode())
        statement = sql.SQL("CREATE ROLE {} LOGIN NOINHERIT PASSWORD {}")
        cursor.execute(statement.format(sql.Identifier(user), sql.Literal(hashed.decode())))
    elif any(row):
        raise OwnerNeeded(
            f"The role {user!r} of {login.variable} must be NOINHERIT and neither SUPERUSER nor BYPASSRLS, or one "
            f'tenant could read another: ALTER ROLE "{user}" NOINHERIT NOSUPERUSER NOBYPASSRLS.'
        )
    elif user in _members(cursor, login.platform):
        raise OwnerNeeded(
            f"The role {user!r} of {login.variable} has the rights of {login.platform!r}: it is the login of "
            "another kind of process. DATABASE_URL names web's login and DATABASE_WORKER_URL the workers'; "
            f'name another role, or REVOKE "{login.platform}" FROM "{user}".'
        )


def let_worker_in(cursor: CursorWrapper, user: str) -> None:
    """Let the workers' login enter their platform role and every tenant; the login itself sees nothing."""
    role, database = sql.Identifier(user), sql.Identifier(_database())
    grant_connect = sql.SQL("GRANT CONNECT ON DATABASE {} TO {}")
    cursor.execute(grant_connect.format(database, role))
    cursor.execute(sql.SQL("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {}").format(role))
    grant_membership(cursor, role=worker_platform_role(_database()), member=user)
    cursor.execute(NOT_ENTERED, [user])
    for (tenant_id,) in cursor.fetchall():
        grant_membership(cursor, role=tenant_role(_database(), tenant_id), member=user)


def _members(cursor: CursorWrapper, role: str) -> list[str]:
    cursor.execute(MEMBERS, [role])
    return [str(name) for (name,) in cursor.fetchall()]


def _database() -> str:
    return str(settings.DATABASES["default"]["NAME"])
