"""Sealing secrets: encrypted for one name of one tenant, so that a row copied elsewhere does not open."""

import functools
import json

from django.conf import settings

from foundation.errors import IsolaneError, Unavailable
from foundation.keyring import KeyRing
from isolane.protocol import dump


class SecretSealBroken(IsolaneError):
    """A sealed secret was found where it does not belong."""

    code = "seal_broken"


class NoEncryptionKey(Unavailable):
    """Secrets cannot be taken, since they could not be stored."""

    code = "no_encryption_key"


def seal(tenant: str, name: str, value: str) -> bytes:
    """Encrypt a secret for one name of one tenant, which is named by its schema."""
    return key_ring().encrypt(dump([tenant, name, value]))


def unseal(tenant: str, name: str, sealed: bytes) -> str:
    """Decrypt what was sealed for this name of this tenant, and for no other."""
    *owner, value = json.loads(key_ring().decrypt(sealed))
    if owner != [tenant, name]:
        raise SecretSealBroken(f"A secret of another owner was found at {name!r} of {tenant!r}.")
    return str(value)


def key_ring() -> KeyRing:
    """The ring: encrypts with the newest key, decrypts with any."""
    return _ring(tuple(settings.ENCRYPTION_KEYS))


def newest_key() -> KeyRing:
    """A ring of the newest key alone: what it cannot decrypt has to be rotated."""
    return _ring(tuple(settings.ENCRYPTION_KEYS[:1]))


@functools.lru_cache(maxsize=4)
def _ring(keys: tuple[str, ...]) -> KeyRing:
    if not keys:
        raise NoEncryptionKey("Secrets need ENCRYPTION_KEYS; 'isolane keys generate' makes one.")
    return KeyRing(keys)
