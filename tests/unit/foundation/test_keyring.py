"""Keys can be rotated without a moment in which something cannot be read."""

import pytest
from cryptography.fernet import Fernet

from foundation.keyring import KeyRing, UndecryptableError, is_valid_key

OLD, NEW = "b2xk" * 10 + "b2w=", "bmV3" * 10 + "bmU="
SECRET = b"the password"


def test_what_was_encrypted_comes_back() -> None:
    token = KeyRing([NEW]).encrypt(SECRET)
    assert SECRET not in token
    assert KeyRing([NEW]).decrypt(token) == SECRET


def test_an_old_token_is_readable_behind_a_new_key() -> None:
    token = KeyRing([OLD]).encrypt(SECRET)
    assert KeyRing([NEW, OLD]).decrypt(token) == SECRET


def test_the_newest_key_encrypts() -> None:
    token = KeyRing([NEW, OLD]).encrypt(SECRET)
    assert KeyRing([NEW]).decrypt(token) == SECRET


def test_a_rotated_token_needs_the_old_key_no_more() -> None:
    token = KeyRing([OLD]).encrypt(SECRET)
    rotated = KeyRing([NEW, OLD]).rotate(token)
    assert KeyRing([NEW]).decrypt(rotated) == SECRET


def test_a_wrong_key_is_refused() -> None:
    token = KeyRing([OLD]).encrypt(SECRET)
    with pytest.raises(UndecryptableError):
        KeyRing([NEW]).decrypt(token)
    with pytest.raises(UndecryptableError):
        KeyRing([NEW]).rotate(token)


def test_a_token_that_was_tampered_with_is_refused() -> None:
    token = bytearray(KeyRing([NEW]).encrypt(SECRET))
    token[20] ^= 1
    with pytest.raises(UndecryptableError):
        KeyRing([NEW]).decrypt(bytes(token))


def test_a_ring_without_keys_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one key"):
        KeyRing([])


def test_its_repr_shows_no_key() -> None:
    assert repr(KeyRing([NEW, OLD])) == "KeyRing(…)"


def test_what_is_generated_is_a_key() -> None:
    assert is_valid_key(Fernet.generate_key().decode())


@pytest.mark.parametrize(
    "key", ["", "short", NEW[:-4], NEW + "AAAA", NEW + OLD, "ä" * 44, "!" * 44, "!!!" + NEW]
)
def test_another_shape_is_no_key(key: str) -> None:
    assert not is_valid_key(key)
