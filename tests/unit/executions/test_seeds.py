"""executions.seeds: a replay gets the same seeds, so the values are written out and must never change."""

from executions.seeds import SEED_BITS, derive_seed


def test_seeds_are_stable() -> None:
    assert derive_seed(0, 0) == 6_213_027_144_842_677_344
    assert derive_seed(42, 3) == 5_521_934_716_539_166_964


def test_seeds_are_distinct_and_fit_a_bigint() -> None:
    seeds = {derive_seed(base, index) for base in range(50) for index in range(50)}
    assert len(seeds) == 2500
    assert all(0 <= seed < 2**SEED_BITS for seed in seeds)
