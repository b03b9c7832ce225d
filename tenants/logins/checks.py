"""Django's system check of the addresses by which logins are counted."""

from typing import Any

from django.core import checks

from tenants.logins.addresses import is_shared_by_all

WITHOUT_ADDRESSES = "tenants.W001"


@checks.register(checks.Tags.security)
def callers_have_addresses(**_: Any) -> list[checks.CheckMessage]:
    """Warn if all callers have the address of a proxy that is not trusted."""
    if not is_shared_by_all():
        return []
    return [
        checks.Warning(
            "ISOLANE_BEHIND_TLS is on, but ISOLANE_TRUSTED_PROXIES is empty: all callers have the proxy's address, so"
            " failed logins cannot be limited by address, and a stranger can slow an account's logins down.",
            hint="Set ISOLANE_TRUSTED_PROXIES to the networks of the proxies that set X-Forwarded-For.",
            id=WITHOUT_ADDRESSES,
        )
    ]
