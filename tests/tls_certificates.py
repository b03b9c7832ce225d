"""A certificate authority of a test's own, and the certificates that it issues."""

import datetime
import ipaddress
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LIFE = datetime.timedelta(days=2)


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The files of a certificate and of its key."""

    certfile: Path
    keyfile: Path

    def server_context(self, *protocols: str) -> ssl.SSLContext:
        """Return the context of a server that proves itself with it, and offers these protocols."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certfile, self.keyfile)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context


class TestAuthority:
    """Signs certificates; nobody trusts it but who is given its `pem`."""

    __test__ = False  # pytest takes the name for a class of tests

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test authority")])
        now = datetime.datetime.now(datetime.UTC)
        self._certificate = (
            _builder(self._name, self._name, self._key.public_key(), now - _LIFE, now + _LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / "authority.pem"
        self.file.write_text(self.pem)

    @property
    def pem(self) -> str:
        """Return its own certificate, as text."""
        return self._certificate.public_bytes(serialization.Encoding.PEM).decode()

    def client_context(self, *protocols: str) -> ssl.SSLContext:
        """Return the context of a client that trusts this authority alone."""
        context = ssl.create_default_context(cadata=self.pem)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context

    def issue(self, *names: str, expired: bool = False) -> Certificate:
        """Sign a certificate for DNS names and IP addresses; the last day of an expired one was yesterday."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        until = now - _LIFE / 2 if expired else now + _LIFE
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        signed = (
            _builder(subject, self._name, key.public_key(), now - _LIFE, until)
            .add_extension(x509.SubjectAlternativeName(list(map(_named, names))), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        return self._written(signed, key)

    def _written(
        self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
    ) -> Certificate:
        number = next(self._numbers)
        certfile, keyfile = self._folder / f"{number}.pem", self._folder / f"{number}.key"
        certfile.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        keyfile.touch(mode=0o600)
        keyfile.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return Certificate(certfile=certfile, keyfile=keyfile)


@contextmanager
def temporary_authority() -> Iterator[TestAuthority]:
    """Make an authority whose files are removed at the end."""
    with TemporaryDirectory(prefix="authority-") as folder:
        yield TestAuthority(Path(folder))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    since: datetime.datetime,
    until: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _named(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
