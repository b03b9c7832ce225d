"""resources.issuers.registry: which types issue something."""

from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from resources.issuers import registry
from resources.issuers.cache import CacheIssuer
from resources.issuers.database import DatabaseIssuer
from resources.issuers.registry import issuer_of


class Plugin(DatabaseIssuer):
    """Somebody else's."""


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Installed: one that fits, one that takes a built-in type's name, one that is no issuer."""
    here = __name__
    found = [
        EntryPoint("ldap", f"{here}:Plugin", registry.ENTRY_POINTS),
        EntryPoint("cache", f"{here}:Plugin", registry.ENTRY_POINTS),
        EntryPoint("broken", "json:dumps", registry.ENTRY_POINTS),
    ]
    monkeypatch.setattr(
        registry, "entry_points", lambda **wanted: EntryPoints(found).select(**wanted)
    )
    issuer_of.cache_clear()
    yield
    issuer_of.cache_clear()


def test_the_built_in_types() -> None:
    assert isinstance(issuer_of("database"), DatabaseIssuer)
    assert isinstance(issuer_of("cache"), CacheIssuer)
    assert issuer_of("http_api") is None
    assert issuer_of("model") is None


def test_a_plugin_is_found_by_its_type(plugins: None) -> None:
    assert type(issuer_of("ldap")) is Plugin
    assert issuer_of("ldap") is issuer_of("ldap")


def test_a_plugin_does_not_replace_a_built_in_type(plugins: None) -> None:
    assert type(issuer_of("cache")) is CacheIssuer


def test_a_plugin_that_is_no_issuer_is_named(plugins: None) -> None:
    with pytest.raises(TypeError, match="broken = json:dumps is not an Issuer"):
        issuer_of("broken")
