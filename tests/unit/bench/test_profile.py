"""Reading the samples of the workers."""

from bench.profile import IDLE, POOL, inclusive


def test_a_call_counts_once_per_stack() -> None:
    stacks = {
        f"{POOL};run;recurse;recurse": 3,
        f"{POOL};run;wait": 1,
        f"{POOL};{IDLE}": 100,
        "MainThread;loop": 50,
    }
    assert inclusive(POOL, stacks) == {"run": 4, "recurse": 3, "wait": 1, "all": 4}
