"""A sealed secret opens for its own tenant and name only."""

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from foundation.keyring import UndecryptableError
from foundation.sealing import NoEncryptionKey, SealBroken, newest_key
from resources.services.sealing import seal, unseal


def test_what_is_sealed_comes_back_and_cannot_be_read() -> None:
    sealed = seal("acme", "billing", "hunter2-ü")
    assert b"hunter2" not in sealed
    assert unseal("acme", "billing", sealed) == "hunter2-ü"
    assert seal("acme", "billing", "hunter2-ü") != sealed


@pytest.mark.parametrize("owner", [("globex", "billing"), ("acme", "other")])
def test_another_owner_cannot_open_it(owner: tuple[str, str]) -> None:
    with pytest.raises(SealBroken, match="another owner") as refused:
        unseal(*owner, seal("acme", "billing", "hunter2"))
    assert "hunter2" not in str(refused.value)


def test_without_a_key_nothing_is_sealed(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = []
    with pytest.raises(NoEncryptionKey, match="ENCRYPTION_KEYS"):
        seal("acme", "billing", "hunter2")


def test_the_newest_key_alone_does_not_open_what_is_older(settings: Settings) -> None:
    sealed = seal("acme", "billing", "hunter2")
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.ENCRYPTION_KEYS]
    assert unseal("acme", "billing", sealed) == "hunter2"
    with pytest.raises(UndecryptableError):
        newest_key().decrypt(sealed)
