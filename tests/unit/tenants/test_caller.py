"""A caller's permissions, and its blueprints."""

import pytest

from foundation.errors import Forbidden
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


def test_a_missing_permission_is_refused_by_name() -> None:
    viewer = caller(Role.VIEWER, None)
    viewer.require(Permission.EXECUTION_VIEW)
    viewer.require(Permission.EXECUTION_VIEW, "billing")
    with pytest.raises(Forbidden, match="key:isl_x lacks execution:run; ask an admin") as refused:
        viewer.require(Permission.EXECUTION_RUN)
    assert refused.value.field is None


def test_a_blueprint_out_of_reach_is_refused_by_name() -> None:
    limited = caller(Role.OPERATOR, ["billing"])
    limited.require(Permission.EXECUTION_RUN, "billing")
    with pytest.raises(Forbidden, match="lacks execution:run on blueprint 'hiring'") as refused:
        limited.require(Permission.EXECUTION_RUN, "hiring")
    assert (refused.value.field, refused.value.http_status) == ("blueprint", 403)


def test_what_belongs_to_the_whole_tenant_takes_an_unlimited_caller() -> None:
    caller(Role.ADMIN, None).require_tenant_wide(Permission.SECRET_EDIT)
    with pytest.raises(Forbidden, match="limited to some blueprints"):
        caller(Role.ADMIN, ["billing"]).require_tenant_wide(Permission.SECRET_EDIT)
    with pytest.raises(Forbidden, match="lacks secret:edit; ask"):
        caller(Role.AUTHOR, None).require_tenant_wide(Permission.SECRET_EDIT)
