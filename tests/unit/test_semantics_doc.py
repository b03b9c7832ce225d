"""docs/semantics.md agrees with the code, as far as they can be compared."""

import re
from functools import cache
from pathlib import Path

import pytest
from django.conf import settings

from executions.api.withholding import EVENT_DATA
from executions.blueprints import plan
from executions.blueprints.plan import FailureMode, Guarantee
from executions.blueprints.validation import failures
from executions.explain.events import SENTENCES, describe_event
from executions.semantics import attempt_output, decisions, memory
from executions.semantics.seeds import backoff_ms, derive_seed
from executions.states import EXECUTION_TRANSITIONS, STEP_TRANSITIONS
from executions.submission import idempotency
from executions.submission.submit import MAX_KEY, IdempotencyConflict
from executions.worker.links import closing
from isolane.protocol import MAX_OUTPUT
from isolane.results import Code
from resources.gate import connection_log
from resources.gate.record import ConnectionReason
from resources.runtimes import supervision

PAGE = Path(__file__).parent.parent.parent / "docs" / "semantics.md"
_NAME = re.compile(r"`([^`]+)`")


@cache
def text() -> str:
    """The page with its lines joined, as it is read."""
    return " ".join(PAGE.read_text(encoding="utf-8").split())


@cache
def table(first_column: str) -> dict[str, list[str]]:
    """The rows of the table whose head begins so: the first cell's name, and the other cells."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {first_column} |"))
    rows: dict[str, list[str]] = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows[name.strip("`")] = cells
    return rows


def test_every_code_is_there_with_its_base() -> None:
    listed = {name: (cells[0], cells[1]) for name, cells in table("code").items()}
    known = {
        code.value: ("yes", str(code.base_ms)) if code.retryable else ("no", "") for code in Code
    }
    assert listed == known


def test_every_state_is_there_with_what_may_follow() -> None:
    for head, transitions in (("of a run", EXECUTION_TRANSITIONS), ("of a step", STEP_TRANSITIONS)):
        described = {name: set(_NAME.findall(cells[1])) for name, cells in table(head).items()}
        assert described == {
            source.value: {target.value for target in targets}
            for source, targets in transitions.items()
        }


def test_every_event_is_there_with_its_data() -> None:
    described = {name: set(_NAME.findall(cells[0])) for name, cells in table("event").items()}
    assert list(described) == list(SENTENCES)
    assert set().union(*described.values()) == EVENT_DATA | {"actor", "host", "message"}


def test_every_reason_of_a_connection_is_there() -> None:
    described = (
        text().partition("`reason` says why a connection ended:")[2].partition("Not promised")[0]
    )
    assert _NAME.findall(described) == list(ConnectionReason)


def test_the_story_is_told_so() -> None:
    lost = {"epoch": 1, "worker": "w1@host", "by": "w2@host", "unbilled": True}
    assert f"  {describe_event('placement.lost', 'pay', lost)}\n" in PAGE.read_text(
        encoding="utf-8"
    )


def test_every_failure_mode_is_there_and_the_one_of_requests() -> None:
    assert list(table("mode")) == [*FailureMode, "bubble"]
    assert f"{plan.DEFAULT_ATTEMPTS} attempts by default" in table("mode")["retry"][0]


def test_every_guarantee_is_there_with_what_its_node_must_declare() -> None:
    described = {name: cells[0].strip("`") for name, cells in table("guarantee").items()}
    assert described == {one.value: failures._NEEDED.get(one, "") for one in Guarantee}
    assert "(the default)" in table("guarantee")[Guarantee.AT_LEAST_ONCE][1]


def test_the_worked_backoffs_are_right() -> None:
    seed = derive_seed(12345, 1)
    assert f"has the seed {seed} " in text()
    codes = (Code.TRANSIENT_ERROR, Code.RATE_LIMIT_ERROR)
    assert table("after attempt") == {
        str(attempt): [
            f"{backoff_ms(code.base_ms, seed=seed, attempt=attempt)} ms" for code in codes
        ]
        for attempt in range(5)
    }
    held = decisions.MAX_HELD_SECONDS * 1000
    waits = [backoff_ms(Code.RATE_LIMIT_ERROR.base_ms, seed=seed, attempt=n) for n in range(5)]
    assert [wait > held for wait in waits] == [False, False, False, False, True]


@pytest.mark.parametrize(
    "sentence",
    [
        f"Up to {decisions.MAX_HELD_SECONDS:g} s the step waits where it is",
        f"renew its lease of {settings.LEASE_SECONDS} s",
        f"After {closing.MAX_LOSSES} losses in a row",
        f"A step has {plan.DEFAULT_STEP_TIMEOUT.removesuffix('s')} s per attempt",
        f"A run has {plan.DEFAULT_RUN_TIMEOUT.removesuffix('m')} min unless",
        f"At most {attempt_output.MAX_COST_KINDS} kinds per attempt",
        f"placement at most {connection_log.MAX_CONNECTIONS} connections",
        f"at most {connection_log.MAX_REFUSALS} refusals",
        f"at most {connection_log.MAX_SAME_REFUSALS} of them of the same host and port",
        f"An output has at most {MAX_OUTPUT // 2**20} MiB",
        f"the whole memory has at most {memory.MAX_MEMORY_BYTES // 2**20} MiB",
        f"at most {MAX_KEY} printable characters",
        f"committed keys for {idempotency.TTL_SECONDS // 3600} h",
        f"`409`, code `{IdempotencyConflict.code}`",
    ],
)
def test_the_figures_are_those_of_the_code(sentence: str) -> None:
    assert sentence in text()


def test_the_figures_in_words_are_those_of_the_code() -> None:
    assert "has one second to end, and is killed" in text()
    assert supervision._GRACE == 1
    assert "for an hour" in table("code")[Code.CATALOGUE_MISSING][2]
    assert settings.CATALOGUE_PATIENCE.total_seconds() == 3600
    assert "five workers in a row" in table("code")[Code.WORKER_LOST][2]
    assert closing.MAX_LOSSES == 5
