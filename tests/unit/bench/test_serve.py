"""A contender that is called over pipes."""

import io
import json

from bench.contenders.base import Contender, Skipped
from bench.serve import serve


class Fake(Contender):
    """A contender with fixed results."""

    def prepare(self) -> None:
        raise ValueError("no table")

    def ready(self) -> None:
        raise Skipped("not here")

    def fill(self, *, steps: int, runs: int) -> None:
        self.filled = (steps, runs)

    def drain(self) -> float:
        return 1.5

    def one(self, *, steps: int) -> float:
        return steps / 10


def answers_to(*requests: dict[str, object]) -> list[dict[str, object]]:
    answers = io.StringIO()
    serve(Fake(), io.StringIO("".join(json.dumps(one) + "\n" for one in requests)), answers)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


def test_calls_are_answered_in_order() -> None:
    found = answers_to(
        {"call": "fill", "steps": 3, "runs": 10}, {"call": "drain"}, {"call": "one", "steps": 3}
    )
    assert found == [{"value": None}, {"value": 1.5}, {"value": 0.3}]


def test_an_error_is_an_answer_and_not_the_end() -> None:
    broken, skipped, unknown, fine = answers_to(
        {"call": "prepare"}, {"call": "ready"}, {"call": "__init__"}, {"call": "drain"}
    )
    assert "ValueError: no table" in str(broken["error"])
    assert skipped == {"skipped": "not here"}
    assert "__init__" in str(unknown["error"])
    assert fine == {"value": 1.5}
