"""Limits on failed logins: the counted subjects and their waits. Pure."""

import hashlib

from foundation.backoff import SECOND, CountedSubject, counting_only, doubling

MINUTE = 60 * SECOND
# Never the account alone: anybody could lock its owner out.
ACCOUNT_AT_ADDRESS = doubling(free=5, longest=5 * MINUTE, memory=60 * MINUTE)
# Many people may share an address.
ADDRESS = doubling(free=20, longest=30 * SECOND, memory=15 * MINUTE)
# Behind a proxy that hides addresses: all callers have the same one.
ACCOUNT_AT_PROXY = doubling(free=5, longest=30 * SECOND, memory=60 * MINUTE)
PROXY = counting_only(memory=15 * MINUTE)


def password_subjects(
    account: str, address: str, *, is_proxy: bool
) -> tuple[CountedSubject, CountedSubject]:
    """Return the subjects of a wrong password: the account at this address, then the address."""
    pair = hashlib.sha256(f"{address} {account}".encode("utf-8", "backslashreplace")).hexdigest()
    return (
        CountedSubject(
            name=f"account:{pair}", backoff=ACCOUNT_AT_PROXY if is_proxy else ACCOUNT_AT_ADDRESS
        ),
        address_subject(address, is_proxy=is_proxy),
    )


def address_subject(address: str, *, is_proxy: bool) -> CountedSubject:
    """Return the subject of all wrong passwords of an address, whatever the account."""
    return CountedSubject(name=f"address:{address}", backoff=PROXY if is_proxy else ADDRESS)


def key_subject(address: str, *, is_proxy: bool) -> CountedSubject:
    """Return the subject of a wrong API key; counted apart, so that a program's old key stops no person."""
    return CountedSubject(name=f"key:{address}", backoff=PROXY if is_proxy else ADDRESS)
