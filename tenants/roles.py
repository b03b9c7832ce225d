"""What a member of a tenant may do. Pure: sync, no state, no I/O."""

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
    """A member's part; each includes the one before."""

    VIEWER = "viewer"  # looks
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
# Who points a definition elsewhere has its secrets sent there: so both are in the same hands.
_ADMIN = _AUTHOR | {Permission.RESOURCE_EDIT, Permission.SECRET_EDIT, Permission.TENANT_MANAGE}

GRANTS: dict[Role, frozenset[Permission]] = {
    Role.VIEWER: _VIEWER,
    Role.OPERATOR: _OPERATOR,
    Role.AUTHOR: _AUTHOR,
    Role.ADMIN: _ADMIN,
}


def allows(role: Role, permission: Permission) -> bool:
    """Say whether a member with this role has this right."""
    return permission in GRANTS[role]
