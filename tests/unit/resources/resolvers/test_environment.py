"""resources.resolvers.environment: a tenant reaches its own variables and no others."""

import pytest

from resources.resolvers.base import SecretUnavailable
from resources.resolvers.environment import EnvironmentResolver

RESOLVER = EnvironmentResolver()


def test_each_tenant_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOLANE_SECRET_ACME__BILLING_PASSWORD", "of-acme")
    monkeypatch.setenv("ISOLANE_SECRET_GLOBEX__BILLING_PASSWORD", "of-globex")
    assert RESOLVER.resolve("acme", "BILLING_PASSWORD") == "of-acme"
    assert RESOLVER.resolve("globex", "BILLING_PASSWORD") == "of-globex"


def test_a_missing_one_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ISOLANE_SECRET_ACME__NONE", raising=False)
    with pytest.raises(SecretUnavailable, match="ISOLANE_SECRET_ACME__NONE"):
        RESOLVER.resolve("acme", "NONE")


@pytest.mark.parametrize(
    ("tenant", "other", "name"),
    [("ac", "ac__me", "ME__KEY"), ("ac", "ac_", "_KEY"), ("ac", "ac___", "__KEY"), ("ac", "ac__me_", "ME___KEY")],
)  # fmt: skip
def test_no_name_reaches_another_tenant_s_variable(
    monkeypatch: pytest.MonkeyPatch, tenant: str, other: str, name: str
) -> None:
    monkeypatch.setenv(f"ISOLANE_SECRET_{other.upper()}__KEY", "of-the-other")
    assert RESOLVER.resolve(other, "KEY") == "of-the-other"
    with pytest.raises(SecretUnavailable, match="single underscores"):
        RESOLVER.resolve(tenant, name)


@pytest.mark.parametrize(
    "name", ["", "lower", "A-B", "A B", "../X", "A=B", "A\0", "A\n", "A_", "Ä", "A" * 101]
)
def test_a_name_of_another_form_is_refused(name: str) -> None:
    with pytest.raises(SecretUnavailable, match="A-Z and 0-9"):
        RESOLVER.resolve("acme", name)


@pytest.mark.parametrize("tenant", ["", "Acme", "a", "ac me", "acme\n", "../acme"])
def test_what_is_no_tenant_is_refused(tenant: str) -> None:
    with pytest.raises(SecretUnavailable, match="is not the name of a tenant"):
        RESOLVER.resolve(tenant, "KEY")
