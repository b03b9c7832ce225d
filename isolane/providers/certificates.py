"""The certificates of authorities that a definition trusts, as PEM; without any, the public authorities."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

MAX_BYTES = 24 * 1024
_BEGIN = "-----BEGIN CERTIFICATE-----"


def fault_in(pem: str) -> str:
    """Return what is wrong with the certificates, and the way out; empty if nothing is."""
    import ssl  # noqa: PLC0415 - web reads definitions without it

    if len(pem) > MAX_BYTES:
        return f"longer than {MAX_BYTES // 1024} KiB; name only the authorities of this server"
    if "PRIVATE KEY" in pem:
        return "contains a private key; give certificates only"
    if _BEGIN not in pem:
        return f"contains no certificate in PEM, which begins with {_BEGIN}"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (ssl.SSLError, TypeError, ValueError):  # TypeError: it is not ASCII
        return "contains a certificate that cannot be read; copy the PEM file as it is"
    return ""


def client_context(ca: str) -> "ssl.SSLContext":
    """Return the TLS settings of a client that trusts these authorities only, or the public ones if none is given."""
    import ssl  # noqa: PLC0415 - likewise

    import certifi  # noqa: PLC0415 - only needed to connect

    public = None if ca else certifi.where()
    context = ssl.create_default_context(cafile=public, cadata=ca or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
