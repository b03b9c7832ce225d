"""The table of roles and rights, pair by pair."""

import pytest

from tenants.roles import Permission, Role, allows

EXPECTED = {
    Role.VIEWER: {
        Permission.EXECUTION_VIEW,
        Permission.BLUEPRINT_VIEW,
        Permission.RESOURCE_VIEW,
    },
    Role.OPERATOR: {
        Permission.EXECUTION_VIEW,
        Permission.BLUEPRINT_VIEW,
        Permission.RESOURCE_VIEW,
        Permission.EXECUTION_RUN,
        Permission.EXECUTION_CANCEL,
        Permission.EXECUTION_ANSWER,
    },
    Role.AUTHOR: set(Permission)
    - {Permission.RESOURCE_EDIT, Permission.SECRET_EDIT, Permission.TENANT_MANAGE},
    Role.ADMIN: set(Permission),
}


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("permission", Permission)
def test_a_role_allows_exactly_its_rights(role: Role, permission: Permission) -> None:
    assert allows(role, permission) is (permission in EXPECTED[role])
