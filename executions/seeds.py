"""Seeds: the same execution seed gives every step the same seed again. Pure."""

import hashlib

SEED_BITS = 63  # fits PostgreSQL's bigint


def derive_seed(base: int, index: int) -> int:
    """The seed of the step at an index, unrelated to its neighbours'."""
    digest = hashlib.sha256(f"{base}:{index}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - SEED_BITS)
