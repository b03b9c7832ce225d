"""resources.resolvers.base: what every resolver's value goes through."""

from typing import Any, cast

import pytest

from resources.resolvers.base import MAX_BYTES, SecretResolver, SecretUnavailable, refusal_of


class Vault(SecretResolver):
    """Somebody else's: hands out what it was made with, or raises it."""

    scheme = "vault"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def read(self, tenant: str, path: str) -> str:
        if isinstance(self.answer, Exception):
            raise self.answer
        return cast(str, self.answer)  # a plugin may err


@pytest.mark.parametrize("value", ["sixchr", "ä" * 6, "x" * MAX_BYTES, "two\nlines"])
def test_a_value_that_fits(value: str) -> None:
    assert refusal_of(value) == ""
    assert Vault(value).resolve("acme", "a/b") == value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("short", "fewer than 6"),
        ("", "fewer than 6"),
        ("with\0nul", "NUL"),
        ("ä" * MAX_BYTES, "at most 8192"),
        ("half \ud800 pair", "UTF-8"),
        (b"bytes-bytes", "must be text"),
        (None, "must be text"),
    ],
)
def test_a_value_that_does_not_is_refused_without_being_told(value: object, reason: str) -> None:
    with pytest.raises(SecretUnavailable, match=reason) as caught:
        Vault(value).resolve("acme", "a/b")
    assert "'vault:a/b'" in str(caught.value)
    assert caught.value.code == "secret_unavailable"
    if value:
        assert str(value) not in str(caught.value)


def test_a_plugin_s_error_is_named_and_not_repeated() -> None:
    with pytest.raises(SecretUnavailable, match="raised KeyError") as caught:
        Vault(KeyError("precious")).resolve("acme", "a/b")
    assert "precious" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_its_own_refusal_goes_through() -> None:
    refusal = Vault("").unavailable("a", "the vault is sealed")
    with pytest.raises(SecretUnavailable, match="the vault is sealed"):
        Vault(refusal).resolve("acme", "a")
