"""Names of schemas and database roles. Pure."""

import re

from orchestrator.core.errors import InvalidInput

TEMPLATE_SCHEMA = "_template"  # no tenant can be called this
SCHEMA_NAME = re.compile(r"[a-z][a-z0-9_]{1,40}\Z")
RESERVED = frozenset(
    {
        "public", "information_schema", "template", "isolane", "admin", "api", "app", "auth", "default", "docs",
        "flower", "health", "internal", "login", "logout", "mail", "none", "owner", "platform", "postgres", "root",
        "static", "status", "support", "system", "tenant", "tenants", "test", "user", "users", "www",
    }
)  # fmt: skip


def check_schema_name(name: str) -> str:
    """Return the name if a tenant may have it; the error says what is wrong and what would do."""
    if not SCHEMA_NAME.match(name):
        raise InvalidInput(
            f"schema {name!r} is not usable: 2 to 41 of a-z, 0-9 and _, beginning with a letter.",
            field="schema",
        )
    if name in RESERVED or name.startswith("pg_"):
        raise InvalidInput(
            f"schema {name!r} is reserved; choose another, such as {name + '_team'!r}.",
            field="schema",
        )
    return name


def platform_role(database: str) -> str:
    """Entered by admission, tick and platform admin. Roles belong to a server, hence the database's name."""
    return f"{database}_platform"


def tenants_group(database: str) -> str:
    """Holds the rights on shared tables that every tenant's role inherits (an ACL of thousands would not fit a row)."""
    return f"{database}_tenants"


def tenant_role(database: str, tenant_id: int) -> str:
    """The role of one tenant; by id, which is never given twice."""
    return f"{database}_t_{tenant_id}"
