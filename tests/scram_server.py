"""The server's side of SCRAM-SHA-256, for one password; it knows nothing of the client's code. Pure."""

import base64
import hashlib
import hmac


class ScramServer:
    """Checks one client; `binding` is what it must be bound to."""

    def __init__(self, password: bytes, *, header: bytes, binding: bytes = b"") -> None:
        self._password = password
        self._header = header
        self._bound = header + binding
        self._client_first = b""
        self._server_first = b""

    def first(self, client_first: bytes, *, iterations: bytes = b"2") -> bytes:
        """Answer the client's first message."""
        assert client_first.startswith(self._header), client_first
        self._client_first = client_first[len(self._header) :]
        nonce = self._client_first.partition(b"r=")[2] + b"more"
        self._iterations = int(iterations)
        salt = base64.b64encode(b"salt of server")
        self._server_first = b"r=" + nonce + b",s=" + salt + b",i=" + iterations
        return self._server_first

    def final(self, client_final: bytes) -> bytes:
        """Check the client's proof and return the server's."""
        said, _, proof = client_final.rpartition(b",p=")
        assert said.startswith(b"c=" + base64.b64encode(self._bound) + b",r="), said
        salted = hashlib.pbkdf2_hmac("sha256", self._password, b"salt of server", self._iterations)
        stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
        signed = b",".join((self._client_first, self._server_first, said))
        signature = hmac.digest(stored, signed, "sha256")
        key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
        assert hashlib.sha256(key).digest() == stored, "the client does not know the password"
        server_key = hmac.digest(salted, b"Server Key", "sha256")
        return b"v=" + base64.b64encode(hmac.digest(server_key, signed, "sha256"))
