"""Sealed secrets: encrypted for one name of one tenant."""

from foundation import sealing


def seal(tenant: str, name: str, value: str) -> bytes:
    """Encrypt a secret for one name of one tenant, given by its schema."""
    return sealing.seal([tenant, name], value)


def unseal(tenant: str, name: str, sealed: bytes) -> str:
    """Decrypt a secret that was sealed for this name of this tenant."""
    return str(sealing.unseal([tenant, name], sealed))
