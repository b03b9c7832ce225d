"""foundation.sealing: the stored form stays the same, and only the owner opens it."""

import json
from typing import Any

import pytest
from cryptography.fernet import Fernet, MultiFernet
from pytest_django import Settings

from foundation.sealing import NoEncryptionKey, SealBroken, newest_key, seal, unseal

OWNERS = (["0b6e9d4e-9f0c-4d52-a6a2-d8b2f8a8a001"], ["acme", "billing"])
VALUES = ("text", "", None, 1.5, ["a"], {"password": "hunter2", "ü": [1, None]})


def cipher(settings: Settings) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.ENCRYPTION_KEYS])


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("value", VALUES)
def test_the_encrypted_text_is_the_owner_and_the_value(
    settings: Settings, owner: list[str], value: Any
) -> None:
    plain = cipher(settings).decrypt(seal(owner, value))
    assert json.loads(plain) == [*owner, value]


@pytest.mark.parametrize("owner", OWNERS)
def test_values_that_an_earlier_version_sealed_still_open(
    settings: Settings, owner: list[str]
) -> None:
    for value in VALUES:
        stored = cipher(settings).encrypt(json.dumps([*owner, value]).encode())
        assert unseal(owner, stored) == value


@pytest.mark.parametrize(
    "other", [[], ["acme"], ["acme", "other"], ["globex", "billing"], ["acme", "billing", "x"]]
)
def test_another_owner_cannot_open_it(other: list[str]) -> None:
    sealed = seal(["acme", "billing"], "hunter2")
    with pytest.raises(SealBroken, match="another owner") as refused:
        unseal(other, sealed)
    assert "hunter2" not in str(refused.value)


def test_without_a_key_nothing_is_sealed_or_opened(settings: Settings) -> None:
    sealed = seal(["acme"], 1)
    settings.ENCRYPTION_KEYS = []
    for call in (lambda: seal(["acme"], 1), lambda: unseal(["acme"], sealed), newest_key):
        with pytest.raises(NoEncryptionKey, match="isolane keys generate"):
            call()
