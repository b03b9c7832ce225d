"""Names of schemas, database roles, hosts and blueprints, and display names. Pure."""

import re

from foundation.errors import InvalidInput

TEMPLATE_SCHEMA = "_template"  # no tenant can be called this
SCHEMA_NAME = re.compile(r"[a-z][a-z0-9_]{1,40}\Z")
BLUEPRINT_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}\Z")
MAX_BLUEPRINTS = 200
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
HOST_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*\Z")
RESERVED = frozenset(
    {
        "public", "information_schema", "template", "isolane", "admin", "api", "app", "auth", "default", "docs",
        "flower", "health", "internal", "login", "logout", "mail", "none", "owner", "platform", "postgres", "root",
        "static", "status", "support", "system", "tenant", "tenants", "test", "user", "users", "www",
    }
)  # fmt: skip


def check_schema_name(name: str) -> str:
    """Return the name if a tenant may have it; the error says what is wrong and what is allowed."""
    if not SCHEMA_NAME.match(name):
        raise InvalidInput(
            f"schema {name!r} is not usable: 2 to 41 of a-z, 0-9 and _, beginning with a letter.",
            field="schema",
        )
    if name in RESERVED or name.startswith("pg_"):
        raise InvalidInput(
            f"schema {name!r} is reserved; choose another, such as {('my_' + name)[:41]!r}.",
            field="schema",
        )
    return name


def check_domain(name: str) -> str:
    """Return the host name in lower case, as requests are matched; refuses ports, schemes and paths."""
    host = name.lower()
    if not HOST_NAME.match(host):
        raise InvalidInput(
            f"domain {name!r} is not a host name; use one such as 'acme.example.com', without a port.",
            field="domain",
        )
    return host


def check_label(name: str, *, most: int) -> str:
    """Return a display name if its column can hold it."""
    if len(name) > most:
        raise InvalidInput(f"name has {len(name)} characters; use at most {most}.", field="name")
    return name


def check_blueprints(names: object) -> list[str] | None:
    """Return the blueprints that a member or key is limited to, each once; None means no limit."""
    if names is None:
        return None
    if not isinstance(names, (list, tuple)):
        raise InvalidInput(
            f'blueprints is {names!r}; use a list of names such as ["billing"], or nothing for all.',
            field="blueprints",
        )
    # An empty list could be meant as none or as all.
    if not 1 <= len(names) <= MAX_BLUEPRINTS:
        raise InvalidInput(
            f"blueprints has {len(names)} names; use 1 to {MAX_BLUEPRINTS}, or leave it out for all.",
            field="blueprints",
        )
    for name in names:
        if not isinstance(name, str) or not BLUEPRINT_NAME.match(name):
            raise InvalidInput(
                f"blueprint {name!r} is not a blueprint's name: 1 to 100 of a-z, 0-9, '.', '_' and '-', "
                "beginning with a letter or digit.",
                field="blueprints",
            )
    return sorted(set(names))


def default_domain(schema: str, base_host: str) -> str:
    """Return a tenant's default host name; a host name has no underscore and does not end in a hyphen."""
    return f"{schema.replace('_', '-').rstrip('-')}.{base_host}"


def platform_role(database: str) -> str:
    """Return the role of web and its admin, with all rights in public. Roles are server-wide: hence the prefix."""
    return f"{database}_platform"


def worker_platform_role(database: str) -> str:
    """Return the platform role of workers: the rights they need, and none on users, keys and quotas."""
    return f"{database}_worker_platform"


def tenants_group(database: str) -> str:
    """Return the group whose rights on shared tables all tenants' roles inherit (an ACL of thousands would not fit)."""
    return f"{database}_tenants"


def tenant_role(database: str, tenant_id: int) -> str:
    """Return the role of one tenant; by id, because ids are never reused."""
    return f"{database}_t_{tenant_id}"
