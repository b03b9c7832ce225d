"""Re-encryption under the newest key, row by row, while runs go on.

Timing: request-time, from a command.
Model: sync.
Guarantee: idempotent; each row is compared and set, so that a newer value is never overwritten.
Failure: undecryptable values are counted and kept; database errors bubble, and a second run continues.
"""

from dataclasses import dataclass
from typing import Any

from django.db.models import Model

from foundation.keyring import UndecryptableError
from foundation.sealing import key_ring, newest_key

BATCH = 100  # rows per query; a sealed output may be large


@dataclass(frozen=True, kw_only=True, slots=True)
class Rotated:
    """The outcome of a rotation, in numbers of values."""

    rotated: int = 0
    current: int = 0  # already under the newest key
    changed: int = 0  # written by others meanwhile; left to another rotation
    unreadable: int = 0  # no key of the ring decrypts them

    def __add__(self, other: "Rotated") -> "Rotated":
        return Rotated(
            rotated=self.rotated + other.rotated,
            current=self.current + other.current,
            changed=self.changed + other.changed,
            unreadable=self.unreadable + other.unreadable,
        )

    @property
    def is_complete(self) -> bool:
        """True if every value is under the newest key."""
        return not self.changed and not self.unreadable


def rotate_column(model: type[Model], column: str) -> Rotated:
    """Re-encrypt one column of sealed values, in the scope entered."""
    total, last = Rotated(), None
    rows = model._default_manager.filter(**{f"{column}__isnull": False}).order_by("pk")
    while True:
        page = rows if last is None else rows.filter(pk__gt=last)
        batch = list(page.values_list("pk", column)[:BATCH])
        for pk, sealed in batch:
            total += _rotate(model, column, pk, bytes(sealed))
        if len(batch) < BATCH:
            return total
        last = batch[-1][0]


def _rotate(model: type[Model], column: str, pk: Any, sealed: bytes) -> Rotated:
    if _is_current(sealed):
        return Rotated(current=1)
    try:
        renewed = key_ring().rotate(sealed)
    except UndecryptableError:
        return Rotated(unreadable=1)
    unchanged = model._default_manager.filter(pk=pk, **{column: sealed})
    return Rotated(rotated=1) if unchanged.update(**{column: renewed}) else Rotated(changed=1)


def _is_current(sealed: bytes) -> bool:
    try:
        newest_key().decrypt(sealed)
    except UndecryptableError:
        return False
    return True
