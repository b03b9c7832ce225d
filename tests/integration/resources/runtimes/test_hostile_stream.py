"""No bytes of a runtime crash, hang, bloat or mislead the worker that supervises it."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executions.semantics.resource_tracker import ResourceTracker
from isolane.protocol import (
    COSTS_MAX,
    HEADER,
    MAX_RESULT,
    VERSION,
    Close,
    Closed,
    Cost,
    Frame,
    Grant,
    Log,
    Open,
    Progress,
    Ready,
    Resource,
    Run,
    encode,
)
from isolane.results import Code, StepResult
from resources.runtimes.base import RuntimeStartError
from resources.runtimes.supervision import LOG_LINES, Supervision
from tests.integration.resources.runtimes.hostile_stream import HostileRunner, Piece

RUN = Run(
    step="pay", uses="a.b", parameters={}, variables={}, attempt=1, seed=1, timeout_s=1, idempotency_key="k"
)  # fmt: skip
OPEN = Open(execution_id="e", tenant_id="acme", user_id="ada", request_id="r", epoch=1)
GRANTED = Grant(
    name="shop", type="database", definition="shop-db", scope="execution", config={}, secrets={}
)
SECONDS = 0.3  # until the deadline
LOG, RESULT = 67, 69


def raw(number: int, payload: bytes, *, length: int | None = None) -> Piece:
    size = len(payload) if length is None else length
    return lambda _: HEADER.pack(VERSION, number, size) + payload


def honest(frame: Any) -> Piece:
    """Send a frame as the right runner would, with the nonce of the RUN."""
    return lambda nonce: encode(replace(frame, nonce=nonce))


def as_it_is(frame: Frame) -> Piece:
    return lambda _: encode(frame)


DONE = StepResult.succeeded(step="pay", attempt=1, output={"paid": True})
LINE = Log(step="pay", level="info", message="x" * 100)
COST = Cost(step="pay", kind="tokens", amount=1.0)
OPENED = Resource(event="allocated", name="shop", resource_id="database_" + "0" * 32, step="pay")

PIECES: dict[str, Piece] = {
    "the result": honest(DONE),
    "a line": honest(LINE),
    "progress": honest(Progress(step="pay", fraction=0.5, message="half")),
    "a cost": honest(COST),
    "a resource": as_it_is(OPENED),
    "a result without the nonce": as_it_is(DONE),
    "a result of another step": honest(replace(DONE, step="fetch")),
    "a result of an earlier attempt": honest(replace(DONE, attempt=0)),
    "a result of an earlier run": as_it_is(replace(DONE, nonce="0" * 16)),
    "a reserved code": honest(StepResult.failed(step="pay", attempt=1, code=Code.WORKER_LOST, message="")),
    "a line of another step": honest(replace(LINE, step="fetch")),
    "a cost of another step": honest(replace(COST, step="fetch")),
    "a cost of an earlier run": as_it_is(replace(COST, nonce="0" * 16)),
    "a forged resource": as_it_is(replace(OPENED, name="vault")),
    "a resource of another step": as_it_is(replace(OPENED, step="fetch")),
    "a disposal of what was never opened": as_it_is(replace(OPENED, event="disposed", resource_id="x_" + "1" * 32)),
    "a forged reuse": honest(replace(DONE, reused={"database_" + "2" * 32: "vault"})),
    "a gigabyte": raw(RESULT, b"{", length=1 << 30),
    "four gigabytes": raw(LOG, b"{", length=(1 << 32) - 1),
    "half a frame": raw(RESULT, b'{"step": "pay"', length=4096),
    "half a header": lambda _: b"\x01\x45",
    "no JSON": raw(RESULT, b"\xff\xfe\x00"),
    "a list": raw(RESULT, b"[]"),
    "invalid UTF-8": raw(LOG, b'{"step":"pay","level":"info","message":"\xc3\x28"}'),
    "a lone surrogate": raw(LOG, json.dumps({"step": "pay", "level": "info", "message": "\ud800"}).encode()),
    "a NUL": raw(LOG, b'{"step":"pay","level":"info","message":"\\u0000"}'),
    "not a number": raw(72 - 1, b'{"step":"pay","kind":"tokens","amount":NaN}'),
    "a negative cost": raw(71, b'{"step":"pay","kind":"tokens","amount":-1}'),
    "deep": raw(RESULT, b'{"step":"pay","output":' + b"[" * 50_000 + b"]" * 50_000 + b"}"),
    "a frame to a runner": raw(2, b"{}"),
    "an unknown frame": raw(200, b"{}"),
    "another version": lambda _: HEADER.pack(9, RESULT, 0),
    "ready": raw(66, b"{}"),
    "closed": raw(70, b'{"errors":[]}'),
    "frames of the gate": raw(81, bytes(8)),
    "a flood": lambda nonce: encode(replace(LINE, nonce=nonce)) * 2500,
}  # fmt: skip


def a_tracker() -> ResourceTracker:
    tracker = ResourceTracker(now=lambda: datetime.now(UTC))
    tracker.set_grants([GRANTED], steps=["pay"])
    return tracker


def tracking(tracker: ResourceTracker) -> Callable[[Resource], None]:
    """Accept a report, or raise, and drop what the tracker tells."""

    def track(frame: Resource) -> None:
        tracker.report(frame)

    return track


class Heard:
    """All that reached the worker, and the result."""

    def __init__(
        self, pieces: Sequence[Piece], *, hangs_up: bool, seconds: float = SECONDS
    ) -> None:
        self.frames: list[Log | Progress | Cost] = []
        tracker = a_tracker()
        self.runner = HostileRunner(pieces, hangs_up=hangs_up)
        began, cpu = time.monotonic(), time.thread_time()
        with contextlib.closing(self.runner):
            self.result = Supervision(
                self.runner,
                RUN,
                deadline=began + seconds,
                cancelled=threading.Event(),
                on_frame=self.frames.append,
                on_resource=tracking(tracker),
            ).result()
            self.seconds = time.monotonic() - began
            self.cpu_seconds = time.thread_time() - cpu
        self.opened = [one.name for one in tracker.unwritten()]


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(
    names=st.lists(st.sampled_from(sorted(PIECES)), max_size=5),
    noise=st.binary(max_size=40),
    hangs_up=st.booleans(),
)
def test_there_is_one_result_and_nothing_that_is_not_true(
    names: list[str], noise: bytes, hangs_up: bool
) -> None:
    pieces = [*(PIECES[name] for name in names), lambda _: noise]
    heard = Heard(pieces, hangs_up=hangs_up or bool(noise))
    assert (heard.result.step, heard.result.attempt) == ("pay", 1)
    assert heard.seconds < SECONDS + 5  # far from for ever, on a busy machine
    assert {frame.step for frame in heard.frames} <= {"pay"}
    assert sum(isinstance(frame, Log) for frame in heard.frames) <= LOG_LINES + 1
    assert set(heard.opened) <= {"shop"}
    if heard.result.code is None:
        assert heard.result.output == {"paid": True}
        assert "the result" in names or "a forged reuse" in names
    else:
        assert heard.result.code in {Code.POLICY_VIOLATION, Code.TIMEOUT, Code.UNKNOWN_ERROR}
        assert heard.runner.kills == 1 or "a reserved code" in names


@pytest.mark.parametrize(
    ("name", "code"),
    [
        *((name, Code.POLICY_VIOLATION) for name in (
            "a result without the nonce", "a result of another step", "a result of an earlier attempt",
            "a result of an earlier run",
            "a forged resource", "a resource of another step", "a disposal of what was never opened", "a forged reuse",
            "a gigabyte", "four gigabytes", "no JSON", "a list", "invalid UTF-8", "a lone surrogate", "a NUL",
            "not a number", "a negative cost", "deep", "a frame to a runner", "an unknown frame", "another version",
            "ready", "closed", "frames of the gate",
        )),
        *((name, Code.TIMEOUT) for name in (
            "half a frame", "half a header", "a line of another step", "a cost of another step",
            "a cost of an earlier run", "a flood",
        )),
        ("a reserved code", Code.UNKNOWN_ERROR),
        ("the result", None),
    ],
)  # fmt: skip
def test_each_ends_as_it_should(name: str, code: Code | None) -> None:
    assert Heard([PIECES[name]], hangs_up=False).result.code == code


@pytest.mark.parametrize("name", ["a line", "a cost"])
@pytest.mark.parametrize("forged", ["of another step", "of an earlier run"])
def test_what_belongs_elsewhere_is_not_told(name: str, forged: str) -> None:
    piece = PIECES.get(f"{name} {forged}", as_it_is(replace(LINE, nonce="0" * 16)))
    heard = Heard([piece, PIECES[name], PIECES["the result"]], hangs_up=False)
    assert heard.result.code is None
    assert len(heard.frames) == 1


# What is no answer, and is let pass before one.
BESIDE_ANSWERS = {
    "a line", "progress", "a cost", "a resource", "a line of another step", "a cost of another step",
    "a cost of an earlier run", "a flood",
}  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "answer", "name"), [(OPEN, Ready, "ready"), (Close(), Closed, "closed")]
)
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(names=st.lists(st.sampled_from(sorted(PIECES)), max_size=3), answers=st.booleans())
def test_an_answer_is_the_right_one_or_its_runner_is_ended(
    asked: Open | Close, answer: type[Ready | Closed], name: str, names: list[str], *, answers: bool
) -> None:
    names = [*names, name] if answers else names
    first = next((one for one in names if one not in BESIDE_ANSWERS), None)
    tracker = a_tracker()
    began = time.monotonic()
    runner = HostileRunner([PIECES[one] for one in names], hangs_up=not answers)
    with contextlib.closing(runner):
        try:
            runner.ask(asked, answer, SECONDS, tracking(tracker))
        except RuntimeStartError:
            assert runner.kills == 1
            # Frames without end may take too long, and a handle is allocated once.
            assert first != name or names.count("a flood") > 1 or names.count("a resource") > 1
        else:
            assert (runner.kills, first) == (0, name)
    assert time.monotonic() < began + SECONDS + 5  # far from for ever, on a busy machine
    assert {one.name for one in tracker.unwritten()} <= {"shop"}


def test_a_hundred_thousand_lines_at_once_cost_a_worker_little() -> None:
    """They are left in the pipe: what is read takes the worker's time and memory, what is not takes nobody's."""
    flood: Piece = lambda nonce: encode(replace(LINE, nonce=nonce)) * 100_000  # noqa: E731 - one of many pieces
    heard = Heard([flood], hangs_up=False, seconds=1.0)
    assert heard.result.code == Code.TIMEOUT
    assert len(heard.frames) == LOG_LINES + 1  # the last one says that there were more
    assert heard.cpu_seconds < 0.3  # of this second
    size = len(encode(replace(LINE, nonce="0" * 16)))
    assert heard.runner.written < 10_000 * size
    assert len(heard.runner.stream._received) < 256 * 1024


def test_costs_are_bounded_and_none_is_dropped() -> None:
    heard = Heard([honest(COST)] * (COSTS_MAX + 1), hangs_up=False, seconds=10)
    assert heard.result.code == Code.POLICY_VIOLATION
    assert len(heard.frames) == COSTS_MAX


def test_a_frame_that_never_ends_is_not_kept_beyond_its_limit() -> None:
    heard = Heard([raw(RESULT, b"x" * (MAX_RESULT + 1))], hangs_up=False)
    assert heard.result.code == Code.POLICY_VIOLATION
    assert len(heard.runner.stream._received) < 256 * 1024
