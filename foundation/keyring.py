"""A ring of encryption keys: encrypt with the first, decrypt with any, so that keys can be rotated without downtime."""

import re
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from foundation.errors import IsolaneError

KEY = re.compile(r"[A-Za-z0-9_-]{43}=\Z")


class UndecryptableError(IsolaneError):
    """No key of the ring decrypts the data: its key was removed, or the data was changed."""

    code = "undecryptable"
    title = "Stored data could not be decrypted"


class KeyRing:
    """Authenticated encryption with a list of keys, the newest first."""

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys:
            raise ValueError("a key ring needs at least one key")
        self._fernet = MultiFernet([Fernet(key) for key in keys])

    def __repr__(self) -> str:
        return "KeyRing(…)"

    def encrypt(self, plain: bytes) -> bytes:
        """Encrypt with the newest key."""
        return self._fernet.encrypt(plain)

    def decrypt(self, token: bytes) -> bytes:
        """Decrypt with the key that fits."""
        try:
            return self._fernet.decrypt(token)
        except InvalidToken:
            raise UndecryptableError(
                "No key in ENCRYPTION_KEYS fits; put the key it was written with back behind the newest."
            ) from None

    def rotate(self, token: bytes) -> bytes:
        """Encrypt again with the newest key; the plain text does not change."""
        try:
            return self._fernet.rotate(token)
        except InvalidToken:
            raise UndecryptableError(
                "No key in ENCRYPTION_KEYS fits; rotate before you drop the old key."
            ) from None


def is_valid_key(key: str) -> bool:
    """Return True if the key is 32 bytes in URL-safe base64, as `isolane keys generate` prints it."""
    # Fernet itself ignores characters outside base64 and text after the padding, such as a second key.
    return KEY.match(key) is not None
