"""isolane.providers.certificates: the authorities that a definition may name, and TLS that trusts them alone."""

import ssl
from pathlib import Path

import pytest

from isolane.providers.certificates import MAX_BYTES, client_context, fault_in
from tests.tls_certificates import TestAuthority


def test_certificates_of_authorities_are_taken(tmp_path: Path) -> None:
    authority = TestAuthority(tmp_path)
    assert fault_in(authority.pem) == ""
    assert fault_in(f"# ours\n{authority.pem}\n{authority.pem}") == ""


@pytest.mark.parametrize(
    ("pem", "fault"),
    [
        ("", "contains no certificate in PEM"),
        ("ca.pem", "contains no certificate in PEM"),
        ("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "cannot be read"),
        ("-----BEGIN CERTIFICATE-----\nä\n-----END CERTIFICATE-----", "cannot be read"),
        ("-----BEGIN EC PRIVATE KEY-----", "contains a private key"),
        ("x" * (MAX_BYTES + 1), "longer than 24 KiB"),
    ],
)
def test_what_is_no_certificate_is_refused(pem: str, fault: str) -> None:
    assert fault in fault_in(pem)


def test_a_context_trusts_the_named_authorities_alone(tmp_path: Path) -> None:
    context = client_context(TestAuthority(tmp_path).pem)
    assert context.cert_store_stats()["x509_ca"] == 1
    assert client_context("").cert_store_stats()["x509_ca"] > 50
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
