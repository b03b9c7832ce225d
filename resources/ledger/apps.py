"""The ledger app."""

from django.apps import AppConfig


class LedgerConfig(AppConfig):
    """What exists at far sides on behalf of placements; in public, since nobody may go through all tenants."""

    name = "resources.ledger"
    label = "ledger"
