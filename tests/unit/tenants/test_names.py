"""Valid names of a tenant's schema and domain, and of granted blueprints."""

import pytest

from foundation.errors import InvalidInput
from tenants.names import (
    MAX_BLUEPRINTS,
    RESERVED,
    TEMPLATE_SCHEMA,
    check_blueprints,
    check_domain,
    check_label,
    check_schema_name,
    default_domain,
    platform_role,
    tenant_role,
    tenants_group,
    worker_platform_role,
)


@pytest.mark.parametrize("name", ["ab", "a1", "a_", "acme_corp_2", "a" * 41])
def test_a_usable_schema_name_comes_back(name: str) -> None:
    assert check_schema_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "a", "a" * 42, "1a", "_a", "Acme", "a-b", "a b", "a.b", 'a"b', "a;b", "äb", "ab\n"],
)
def test_another_shape_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="2 to 41 of a-z") as refused:
        check_schema_name(name)
    assert refused.value.field == "schema"


@pytest.mark.parametrize("name", [*sorted(RESERVED), "pg_", "pg_catalog", "pg_toast_1"])
def test_a_reserved_name_is_refused_with_another_to_take(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"'{name}' is reserved.*'my_{name}'"):
        check_schema_name(name)
    assert check_schema_name(f"my_{name}")


def test_no_tenant_can_have_the_templates_name() -> None:
    with pytest.raises(InvalidInput):
        check_schema_name(TEMPLATE_SCHEMA)


def test_roles_carry_the_databases_name() -> None:
    assert platform_role("shop") == "shop_platform"
    assert worker_platform_role("shop") == "shop_worker_platform"
    assert tenants_group("shop") == "shop_tenants"
    assert tenant_role("shop", 7) == "shop_t_7"


@pytest.mark.parametrize(
    ("schema", "host"),
    [("acme", "acme.x.org"), ("acme_corp", "acme-corp.x.org"), ("acme_", "acme.x.org")],
)
def test_the_default_domain_is_a_host_name(schema: str, host: str) -> None:
    assert check_domain(default_domain(schema, "x.org")) == host


@pytest.mark.parametrize(
    ("name", "host"), [("Acme.Example.COM", "acme.example.com"), ("a" * 63, "a" * 63)]
)
def test_a_domain_is_kept_in_lower_case(name: str, host: str) -> None:
    assert check_domain(name) == host


@pytest.mark.parametrize(
    "name",
    ["", "acme.com:80", "https://acme.com", "acme.com/", "acme_x.com", "-a.com", "a..b", "a.", "a" * 64,
     ".".join(["a" * 49] * 6), "acme.com\n"],
)  # fmt: skip
def test_what_is_no_host_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a host name") as refused:
        check_domain(name)
    assert refused.value.field == "domain"


def test_a_name_for_people_has_a_length() -> None:
    assert check_label("ü" * 10, most=10) == "ü" * 10
    with pytest.raises(InvalidInput, match="name has 11 characters; use at most 10") as refused:
        check_label("ü" * 11, most=10)
    assert refused.value.field == "name"


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (None, None),
        (["billing"], ["billing"]),
        (("b", "a.1", "0_x-y", "b"), ["0_x-y", "a.1", "b"]),
        (["a" * 100], ["a" * 100]),
    ],
)
def test_granted_blueprints_are_kept_once_and_in_order(names: object, kept: object) -> None:
    assert check_blueprints(names) == kept


@pytest.mark.parametrize(
    "name", ["", "Billing", "-a", ".a", "a b", "a/b", "a" * 101, "a\n", "*", 5]
)
def test_what_is_no_blueprints_name_is_refused(name: object) -> None:
    with pytest.raises(InvalidInput, match="is not a blueprint's name: 1 to 100 of a-z") as refused:
        check_blueprints(["billing", name])
    assert refused.value.field == "blueprints"
    assert repr(name) in refused.value.detail


@pytest.mark.parametrize("names", ["billing", {"billing": True}, 5, False])
def test_what_is_no_list_of_blueprints_is_refused(names: object) -> None:
    with pytest.raises(InvalidInput, match="use a list of names"):
        check_blueprints(names)


@pytest.mark.parametrize("count", [0, MAX_BLUEPRINTS + 1])
def test_so_many_blueprints_can_be_granted(count: int) -> None:
    assert check_blueprints([f"b{number}" for number in range(MAX_BLUEPRINTS)])
    with pytest.raises(InvalidInput, match=f"has {count} names; use 1 to 200, or leave it out"):
        check_blueprints([f"b{number}" for number in range(count)])
