"""executions.models.sealing: nothing can be read from what is sealed, and no other execution can open it."""

from uuid import UUID

import pytest
from pytest_django import Settings

from executions.models.sealing import seal, unseal
from foundation.sealing import NoEncryptionKey, SealBroken

MINE, OTHER = UUID(int=1), UUID(int=2)


def test_what_is_sealed_comes_back_and_cannot_be_read() -> None:
    value = {"password": "hunter2", "list": [1, None, "ü"]}
    sealed = seal(MINE, value)
    assert b"hunter2" not in sealed
    assert unseal(MINE, sealed) == value
    assert seal(MINE, value) != sealed


def test_another_execution_cannot_open_it() -> None:
    with pytest.raises(SealBroken, match=str(OTHER)) as refused:
        unseal(OTHER, seal(MINE, "hunter2"))
    assert "hunter2" not in str(refused.value)


def test_without_a_key_nothing_is_sealed(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = []
    with pytest.raises(NoEncryptionKey, match="ENCRYPTION_KEYS"):
        seal(MINE, 1)
