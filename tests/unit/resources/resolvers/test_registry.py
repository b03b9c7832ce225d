"""resources.resolvers.registry: references to secrets, and their resolvers."""

from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from foundation.errors import InvalidInput
from resources.resolvers import registry
from resources.resolvers.environment import EnvironmentResolver
from resources.resolvers.file import FileResolver
from resources.resolvers.registry import Reference, UnknownScheme, parse, resolver_of


class Vault(EnvironmentResolver):
    """Somebody else's."""

    scheme = "vault"


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Installed: one that fits, one that takes a built-in scheme, one that is no resolver."""
    here = __name__
    found = [
        EntryPoint("vault", f"{here}:Vault", registry.ENTRY_POINTS),
        EntryPoint("env", f"{here}:Vault", registry.ENTRY_POINTS),
        EntryPoint("broken", "json:dumps", registry.ENTRY_POINTS),
    ]
    monkeypatch.setattr(
        registry, "entry_points", lambda **wanted: EntryPoints(found).select(**wanted)
    )
    resolver_of.cache_clear()
    yield
    resolver_of.cache_clear()


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("billing-password", Reference("", "billing-password")),
        ("env:BILLING", Reference("env", "BILLING")),
        ("file:billing.txt", Reference("file", "billing.txt")),
        ("vault:kv/data/billing#password", Reference("vault", "kv/data/billing#password")),
        ("vault:a:b", Reference("vault", "a:b")),
    ],
)
def test_a_reference(text: str, reference: Reference) -> None:
    assert parse(text) == reference
    assert str(reference) == text


@pytest.mark.parametrize(
    "text",
    [
        "", ":", "env:", ":x", "ENV:X", "Billing", "a b", "../x", "a'; drop table", "env:a b", "env:a\n", "x\n",
        "env:ä", "a" * 64, "env:" + "A" * 256, "é",
    ],
)  # fmt: skip
def test_what_is_none_is_refused_with_what_would_do(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a reference; use") as caught:
        parse(text)
    assert caught.value.field == "secrets"


def test_the_built_in_schemes() -> None:
    assert isinstance(resolver_of("env"), EnvironmentResolver)
    assert isinstance(resolver_of("file"), FileResolver)


def test_a_plugin_is_found_by_its_scheme(plugins: None) -> None:
    assert type(resolver_of("vault")) is Vault


def test_a_plugin_does_not_replace_a_built_in_scheme(plugins: None) -> None:
    assert type(resolver_of("env")) is EnvironmentResolver


def test_a_plugin_that_is_no_resolver_is_named(plugins: None) -> None:
    with pytest.raises(TypeError, match="broken = json:dumps is not a SecretResolver"):
        resolver_of("broken")


@pytest.mark.parametrize("scheme", ["aws", ""])
def test_an_unknown_scheme_names_the_known_ones(plugins: None, scheme: str) -> None:
    with pytest.raises(UnknownScheme, match="broken, env, file, vault") as caught:
        resolver_of(scheme)
    assert caught.value.code == "unknown_secret_scheme"
