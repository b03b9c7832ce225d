"""Seeds: the same execution seed gives every step the same seed and every retry the same backoff. Pure."""

import hashlib

SEED_BITS = 63  # fits PostgreSQL's bigint


def derive_seed(base: int, index: int) -> int:
    """Return the seed of the step at an index, unrelated to those of its neighbours."""
    return _number(f"{base}:{index}")


def backoff_ms(base_ms: int, *, seed: int, attempt: int) -> int:
    """Return the wait after a failed attempt, counted from 0; the jitter is below base_ms."""
    jitter = _number(f"jitter:{seed ^ attempt}") % base_ms
    return int(base_ms * 2**attempt) + jitter


def _number(text: str) -> int:
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - SEED_BITS)
