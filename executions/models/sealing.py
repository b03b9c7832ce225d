"""Sealed values of executions: encrypted for one execution."""

from typing import Any
from uuid import UUID

from foundation import sealing


def seal(execution_id: UUID, value: Any) -> bytes:
    """Encrypt a value for one execution."""
    return sealing.seal([str(execution_id)], value)


def unseal(execution_id: UUID, sealed: bytes) -> Any:
    """Decrypt a value that was sealed for this execution."""
    return sealing.unseal([str(execution_id)], sealed)
