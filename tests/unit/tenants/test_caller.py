"""A caller's permissions, and its blueprints."""

import pytest

from tenants.caller import Caller, reach
from tenants.roles import Permission, Role
from tenants.scope import TenantRef
from tenants.statuses import TenantStatus

ACME = TenantRef(id=1, schema="acme", status=TenantStatus.ACTIVE)


def caller(role: Role, blueprints: list[str] | None) -> Caller:
    return Caller(tenant=ACME, role=role, name="key:isl_x", blueprints=reach(blueprints))


@pytest.mark.parametrize(
    ("blueprints", "reached"),
    [
        (None, {"billing", "hiring"}),
        (["billing"], {"billing"}),
        (["billing", "hiring"], {"billing", "hiring"}),
        (["bill", "billing.eu"], set()),
        ([], set()),
    ],
)
def test_a_right_reaches_the_granted_blueprints_only(
    blueprints: list[str] | None, reached: set[str]
) -> None:
    limited = caller(Role.OPERATOR, blueprints)
    for permission in (
        Permission.EXECUTION_VIEW,
        Permission.EXECUTION_RUN,
        Permission.EXECUTION_CANCEL,
        Permission.BLUEPRINT_VIEW,
    ):
        assert limited.may(permission)
        assert {name for name in ("billing", "hiring") if limited.may(permission, name)} == reached


def test_a_granted_blueprint_gives_no_right_that_the_role_lacks() -> None:
    assert not caller(Role.VIEWER, ["billing"]).may(Permission.EXECUTION_RUN, "billing")
    assert not caller(Role.VIEWER, None).may(Permission.EXECUTION_RUN)


def test_without_a_word_about_blueprints_all_are_meant() -> None:
    everywhere = Caller(tenant=ACME, role=Role.ADMIN, name="user:alice")
    assert all(everywhere.may(permission, "billing") for permission in Permission)
