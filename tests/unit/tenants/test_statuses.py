"""The statuses of a tenant and what they allow."""

from tenants.statuses import TenantStatus


def test_only_an_active_tenant_takes_new_work() -> None:
    assert TenantStatus.open() == {TenantStatus.ACTIVE}


def test_what_was_begun_may_end_whatever_the_status() -> None:
    assert TenantStatus.any() == {"active", "suspended", "deleting"}
