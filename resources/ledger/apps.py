"""The ledger app."""

from django.apps import AppConfig


class LedgerConfig(AppConfig):
    """Credentials at remote servers; in the public schema, so that one query finds those of all tenants."""

    name = "resources.ledger"
    label = "ledger"
