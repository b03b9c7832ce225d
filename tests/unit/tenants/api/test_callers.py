"""tenants.api.callers: the caller is what an authentication class has set, and nothing else."""

import pytest
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from foundation.errors import Unauthenticated
from tenants.api.callers import authenticated_caller, caller
from tenants.caller import Caller
from tenants.roles import Role
from tenants.scope import TenantRef
from tenants.statuses import TenantStatus

ACME = TenantRef(id=1, schema="acme", status=TenantStatus.ACTIVE)


def request(auth: object) -> Request:
    made = Request(APIRequestFactory().get("/"))
    made.auth = auth
    return made


def test_the_caller_is_the_one_that_was_authenticated() -> None:
    alice = Caller(tenant=ACME, role=Role.VIEWER, name="user:alice")
    assert caller(request(alice)) is alice


@pytest.mark.parametrize("auth", [None, "isl_x"])
def test_without_one_the_request_is_refused(auth: object) -> None:
    assert authenticated_caller(request(auth)) is None
    with pytest.raises(Unauthenticated, match="Sign in, or send an API key"):
        caller(request(auth))
