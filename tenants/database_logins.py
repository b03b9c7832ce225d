"""The roles that web and workers log in as: made if missing, refused if they may do more than they should."""

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
    """A role with a password, and where it was named."""

    user: str
    password: str = field(repr=False)
    variable: str
    platform: str  # the platform role that it must not be a member of: the other's


def web_login() -> DatabaseLogin:
    """The login of DATABASE_URL, when schemas and roles are changed: web's."""
    named = settings.DATABASES["default"]
    return DatabaseLogin(
        user=str(named["USER"]),
        password=str(named["PASSWORD"]),
        variable="DATABASE_URL",
        platform=worker_platform_role(_database()),
    )


def worker_login() -> DatabaseLogin | None:
    """The login of DATABASE_WORKER_URL; none if workers log in as web does."""
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
    """Everybody who enters tenants, as the database knows them: a provisioner need not be told of workers."""
    return [web_login().user, *_members(cursor, worker_platform_role(_database()))]


def ensure_login(cursor: CursorWrapper, login: DatabaseLogin) -> None:
    """Create a login role unless it exists, and refuse one that would see more than it should."""
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
            f"The role {user!r} of {login.variable} has the rights of {login.platform!r}: it is the login of the "
            "others. DATABASE_URL names web's login here and DATABASE_WORKER_URL the workers'; name another role, "
            f'or REVOKE "{login.platform}" FROM "{user}".'
        )


def let_worker_in(cursor: CursorWrapper, user: str) -> None:
    """Let the workers' login enter their platform role and every tenant; by itself it sees nothing."""
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
