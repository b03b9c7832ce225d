"""The answers to a PostgreSQL server's questions for a password. Pure, except for the random nonce."""

import hashlib
import secrets

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes

from resources.gate.brokers.postgres_login import PostgresLogin
from resources.gate.brokers.postgres_messages import message
from resources.gate.brokers.postgres_refusal import PostgresRefusal
from resources.gate.brokers.postgres_scram import PLAIN, PLUS, ScramError, ScramExchange
from resources.gate.brokers.streams import Proof
from resources.gate.record import ConnectionReason

_CLEARTEXT, _MD5, _SASL, _SASL_CONTINUE, _SASL_FINAL = 3, 5, 10, 11, 12
_WEAK = frozenset({"md5", "sha1"})  # RFC 5929: replaced by SHA-256


class Authentication:
    """One authentication; `certificate` is the server's in DER, empty without TLS."""

    def __init__(self, login: PostgresLogin, certificate: bytes) -> None:
        self._login = login
        self._has_tls = bool(certificate)
        self._binding = certificate_hash(certificate) if certificate else b""
        self._scram: ScramExchange | None = None
        self._has_continued = False

    def answer(self, request: int, data: bytes) -> bytes:
        """Return the message that answers an authentication request, empty if none does; may take long."""
        try:
            if request in {_SASL_CONTINUE, _SASL_FINAL}:
                return self._go_on(request, data)
            return message(b"p", self._begin(request, data))
        except ScramError as error:
            raise self._refused(str(error), "ask the server's administrator") from None

    def finish(self) -> None:
        """Refuse a server that lets the user in before it has proved what it began to prove."""
        if self._scram and not self._scram.is_proved:
            raise self._refused(
                "the server broke SCRAM off in the middle", "ask the server's administrator"
            )

    def _begin(self, request: int, data: bytes) -> bytes:
        if request not in {_CLEARTEXT, _MD5, _SASL}:
            raise self._refused(
                f"the server asks for authentication of kind {request}, which is not supported",
                "let it ask for scram-sha-256 in pg_hba.conf",
            )
        if not self._login.password:
            raise self._refused(
                "the server asks for a password, and the definition has none",
                "give its definition the secret 'password'",
            )
        if request == _SASL:
            return self._sasl(data)
        return (self._md5(data) if request == _MD5 else self._cleartext()) + b"\0"

    def _sasl(self, data: bytes) -> bytes:
        offered = {name.decode("ascii", "replace") for name in data.split(b"\0")}
        is_plus = bool(self._binding) and PLUS in offered
        if not is_plus and PLAIN not in offered:
            raise self._refused(
                f"the server offers {', '.join(sorted(filter(None, offered)))[:200]} only",
                f"let it offer {PLAIN}",
            )
        self._scram = ScramExchange(
            self._login.prepared_password,
            nonce=secrets.token_urlsafe(24),
            binding=self._binding,
            is_plus=is_plus,
        )
        name, first = (PLUS if is_plus else PLAIN).encode(), self._scram.first
        return name + b"\0" + len(first).to_bytes(4, "big") + first

    def _go_on(self, request: int, data: bytes) -> bytes:
        if self._scram is None:
            raise ScramError("the server goes on with SCRAM, which it did not begin")
        if request == _SASL_CONTINUE:
            if self._has_continued:
                raise ScramError("the server asks for the same proof twice")
            self._has_continued = True
            return message(b"p", self._scram.final(data))
        self._scram.finish(data)
        return b""

    def _md5(self, salt: bytes) -> bytes:
        inner = _md5_hex(self._login.password.encode() + self._login.user.encode())
        return b"md5" + _md5_hex(inner + salt[:4])

    def _cleartext(self) -> bytes:
        if not (self._has_tls and self._login.proof is Proof.NAME):
            raise self._refused(
                "the server asks for the password in clear",
                "set the definition's sslmode to verify-full, or let the server ask for scram-sha-256",
            )
        return self._login.password.encode()

    def _refused(self, text: str, way_out: str) -> PostgresRefusal:
        return PostgresRefusal.because(
            ConnectionReason.LOGIN, "28000", f"{self._login.place}: {text}", way_out
        )


def certificate_hash(certificate: bytes) -> bytes:
    """Return the hash for channel binding (tls-server-end-point); empty where none is defined."""
    try:
        found = x509.load_der_x509_certificate(certificate).signature_hash_algorithm
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion):
        return b""
    if found is None:  # as for Ed25519
        return b""
    digest = hashes.Hash(hashes.SHA256() if found.name in _WEAK else found)
    digest.update(certificate)
    return digest.finalize()


def _md5_hex(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).hexdigest().encode()
