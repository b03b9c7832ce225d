"""executions.semantics.seeds: a replay gets the same seeds, so the values are written out and must never change."""

import pytest

from executions.semantics.seeds import SEED_BITS, backoff_ms, derive_seed

BASES = (1, 1000, 5000)


def test_seeds_are_stable() -> None:
    assert derive_seed(0, 0) == 6_213_027_144_842_677_344
    assert derive_seed(42, 3) == 5_521_934_716_539_166_964


def test_seeds_are_distinct_and_fit_a_bigint() -> None:
    seeds = {derive_seed(base, index) for base in range(50) for index in range(50)}
    assert len(seeds) == 2500
    assert all(0 <= seed < 2**SEED_BITS for seed in seeds)


def test_backoffs_are_stable() -> None:
    found = [backoff_ms(1000, seed=42, attempt=attempt) for attempt in range(3)]
    assert found == [1115, 2161, 4237]


@pytest.mark.parametrize("base", BASES)
def test_a_backoff_doubles_and_its_jitter_is_below_the_base(base: int) -> None:
    for attempt in range(10):
        jitters = {
            backoff_ms(base, seed=seed, attempt=attempt) - base * 2**attempt for seed in range(200)
        }
        assert min(jitters) >= 0
        assert max(jitters) < base
        assert len(jitters) > 1 or base == 1


def test_the_jitter_depends_on_seed_and_attempt_together_by_xor() -> None:
    first = backoff_ms(1000, seed=42, attempt=1) - 2000
    second = backoff_ms(1000, seed=42 ^ 1, attempt=0) - 1000
    assert first == second
