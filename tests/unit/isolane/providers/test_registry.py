"""isolane.providers.registry: built-in types and those of packages."""

import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator

import pytest

from isolane.providers.base import Provider
from isolane.providers.registry import ENTRY_POINTS, provider_of, types
from tests.unit.isolane.fake_provider import FakeProvider

BUILT_IN = ["cache", "database", "http_api", "model"]


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that brings one type, claims a built-in one, and has one that is none."""
    here = f"{FakeProvider.__module__}:"
    found = importlib.metadata.EntryPoints(
        importlib.metadata.EntryPoint(name, here + value, ENTRY_POINTS)
        for name, value in (("fake", "FakeProvider"), ("cache", "FakeProvider"), ("odd", "SECRET"))
    )
    monkeypatch.setattr(importlib.metadata, "entry_points", found.select)
    provider_of.cache_clear()
    yield
    provider_of.cache_clear()


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_built_in_type_has_one_provider(name: str) -> None:
    provider = provider_of(name)
    assert isinstance(provider, Provider)
    assert provider.type == name
    assert provider_of(name) is provider


def test_packages_bring_types_and_take_none_away(plugins: None) -> None:
    assert types() == ["cache", "database", "fake", "http_api", "model", "odd"]
    assert isinstance(provider_of("fake"), FakeProvider)
    assert not isinstance(provider_of("cache"), FakeProvider)
    with pytest.raises(
        LookupError, match="type odd: 'correct-horse' is not a subclass of Provider"
    ):
        provider_of("odd")


def test_an_unknown_type_is_told_the_known_ones() -> None:
    assert set(types()) >= set(BUILT_IN)
    with pytest.raises(LookupError, match="type 'ftp' is unknown; known are: cache, database, "):
        provider_of("ftp")


def test_looking_a_provider_up_imports_no_driver() -> None:
    script = (
        "import sys\n"
        "from isolane.providers.registry import provider_of, types\n"
        "[provider_of(name).config for name in types()]\n"
        "assert not {'psycopg', 'redis', 'httpx'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
