"""The tables of the ledger."""

from resources.ledger.models.issued import Issued

__all__ = ["Issued"]
