"""Django's system check of what logins are counted by."""

from typing import Any

from django.core import checks

from tenants.logins.addresses import is_everybodys

WITHOUT_ADDRESSES = "tenants.W001"


@checks.register(checks.Tags.security)
def callers_have_addresses(**_: Any) -> list[checks.CheckMessage]:
    """Behind a proxy that is not trusted all callers have its address."""
    if not is_everybodys():
        return []
    return [
        checks.Warning(
            "ISOLANE_BEHIND_TLS is on, but ISOLANE_TRUSTED_PROXIES is empty: all callers have the proxy's address, so"
            " failed logins cannot be limited by address, and a stranger can slow an account's logins down.",
            hint="Set ISOLANE_TRUSTED_PROXIES to the networks of the proxies that set X-Forwarded-For.",
            id=WITHOUT_ADDRESSES,
        )
    ]
