"""Sealing: encryption of sensitive values before they are stored."""

import functools
import json
from typing import Any
from uuid import UUID

from django.conf import settings

from foundation.errors import IsolaneError, Unavailable
from foundation.keyring import KeyRing
from isolane.protocol import dump


class SealBroken(IsolaneError):
    """Sealed data of another execution was found."""

    code = "seal_broken"


class NoEncryptionKey(Unavailable):
    """Sensitive values cannot be accepted because they could not be stored."""

    code = "no_encryption_key"


def seal(execution_id: UUID, value: Any) -> bytes:
    """Encrypt a value for one execution."""
    return _ring(tuple(settings.ENCRYPTION_KEYS)).encrypt(dump([str(execution_id), value]))


def unseal(execution_id: UUID, sealed: bytes) -> Any:
    """Decrypt a value that was sealed for this execution; refuse one that was sealed for another."""
    owner, value = json.loads(_ring(tuple(settings.ENCRYPTION_KEYS)).decrypt(sealed))
    if owner != str(execution_id):
        raise SealBroken(f"Sealed data of another execution was found at exec_{execution_id}.")
    return value


@functools.lru_cache(maxsize=4)
def _ring(keys: tuple[str, ...]) -> KeyRing:
    if not keys:
        raise NoEncryptionKey(
            "Sensitive values need ENCRYPTION_KEYS; 'isolane keys generate' makes one."
        )
    return KeyRing(keys)
