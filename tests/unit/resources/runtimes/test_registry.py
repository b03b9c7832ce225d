"""resources.runtimes.registry: backends from settings."""

from typing import Any

import pytest

from resources.runtimes.registry import build_backends
from resources.runtimes.shared import SharedBackend
from resources.runtimes.stub import StubBackend, succeeds

SHARED = "resources.runtimes.shared.SharedBackend"


def test_backends_are_built_by_level() -> None:
    backends = build_backends(
        {
            "shared": {"BACKEND": SHARED, "OPTIONS": {"size": 2, "packages": ["a"]}},
            "process": {
                "BACKEND": "resources.runtimes.stub.StubBackend",
                "OPTIONS": {"script": {"a": succeeds(1)}},
            },
        }
    )
    assert isinstance(backends["shared"], SharedBackend)
    assert isinstance(backends["process"], StubBackend)
    assert [backend.level for backend in backends.values()] == ["shared", "process"]
    for backend in backends.values():
        backend.stop()


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"BACKEND": SHARED}, r"RUNTIMES\['shared'\]\['OPTIONS'\].*size"),
        ({"BACKEND": SHARED, "OPTIONS": {"size": 1, "colour": 2}}, "colour"),
        ({"BACKEND": "resources.placement.Placement"}, "is not a RuntimeBackend"),
    ],
)
def test_a_wrong_entry_is_refused_by_name(entry: dict[str, Any], reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        build_backends({"shared": entry})


def test_a_missing_backend_is_an_import_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"resources\.runtimes\.nowhere"):
        build_backends({"shared": {"BACKEND": "resources.runtimes.nowhere.Backend"}})
