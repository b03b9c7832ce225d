"""The tables of the ledger."""

from resources.ledger.models.issued_credential import IssuedCredential

__all__ = ["IssuedCredential"]
