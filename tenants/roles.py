"""Roles of a tenant's members and their permissions. Pure: sync, no state, no I/O."""

from django.db.models import TextChoices


class Permission(TextChoices):
    """One right within one tenant."""

    EXECUTION_VIEW = "execution:view"
    EXECUTION_RUN = "execution:run"
    EXECUTION_CANCEL = "execution:cancel"
    EXECUTION_ANSWER = "execution:answer"
    BLUEPRINT_VIEW = "blueprint:view"
    BLUEPRINT_EDIT = "blueprint:edit"
    RESOURCE_VIEW = "resource:view"
    RESOURCE_EDIT = "resource:edit"
    SECRET_EDIT = "secret:edit"  # noqa: S105 - a right's name
    TENANT_MANAGE = "tenant:manage"


class Role(TextChoices):
    """A member's role; each includes the one before."""

    VIEWER = "viewer"  # reads
    OPERATOR = "operator"  # runs, cancels and answers
    AUTHOR = "author"  # publishes blueprints
    ADMIN = "admin"  # manages members, keys, resources and secrets


_VIEWER = frozenset(
    {Permission.EXECUTION_VIEW, Permission.BLUEPRINT_VIEW, Permission.RESOURCE_VIEW}
)
_OPERATOR = _VIEWER | {
    Permission.EXECUTION_RUN,
    Permission.EXECUTION_CANCEL,
    Permission.EXECUTION_ANSWER,
}
_AUTHOR = _OPERATOR | {Permission.BLUEPRINT_EDIT}
# Changing a definition's address sends its secrets there, so both rights go together.
_ADMIN = _AUTHOR | {Permission.RESOURCE_EDIT, Permission.SECRET_EDIT, Permission.TENANT_MANAGE}

GRANTS: dict[Role, frozenset[Permission]] = {
    Role.VIEWER: _VIEWER,
    Role.OPERATOR: _OPERATOR,
    Role.AUTHOR: _AUTHOR,
    Role.ADMIN: _ADMIN,
}


def allows(role: Role, permission: Permission) -> bool:
    """Return True if this role has this permission."""
    return permission in GRANTS[role]
