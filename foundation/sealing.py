"""Sealing: encrypt values for one owner before they are stored.

The encrypted text is the JSON array `[*owner, value]`. A value copied to another owner's row does not open there.
"""

import functools
import json
from collections.abc import Sequence
from typing import Any

from django.conf import settings

from foundation.errors import IsolaneError, Unavailable
from foundation.keyring import KeyRing
from isolane.protocol import dump


class SealBroken(IsolaneError):
    """A sealed value belongs to another owner."""

    code = "seal_broken"


class NoEncryptionKey(Unavailable):
    """A value cannot be sealed or opened, since no key is configured."""

    code = "no_encryption_key"


def seal(owner: Sequence[str], value: Any) -> bytes:
    """Encrypt a value for one owner, with the newest key."""
    return key_ring().encrypt(dump([*owner, value]))


def unseal(owner: Sequence[str], sealed: bytes) -> Any:
    """Decrypt a value that was sealed for this owner, with any key of the ring."""
    *found, value = json.loads(key_ring().decrypt(sealed))
    if found != [*owner]:
        raise SealBroken(f"Sealed data of another owner was found at {' '.join(owner)}.")
    return value


def key_ring() -> KeyRing:
    """Return the ring of all configured keys."""
    return _ring(tuple(settings.ENCRYPTION_KEYS))


def newest_key() -> KeyRing:
    """Return a ring of the newest key alone; values that it cannot decrypt must be rotated."""
    return _ring(tuple(settings.ENCRYPTION_KEYS[:1]))


@functools.lru_cache(maxsize=4)
def _ring(keys: tuple[str, ...]) -> KeyRing:
    if not keys:
        raise NoEncryptionKey(
            "Secrets and sensitive values need ENCRYPTION_KEYS; 'isolane keys generate' makes one."
        )
    return KeyRing(keys)
