"""isolane.protocol: every frame survives the wire, and nothing else gets through."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolane.names import COST_KIND, RESOURCE_ID, VARIABLE
from isolane.protocol import (
    COST_MAX,
    HEADER,
    MAX_DEPTH,
    MAX_FRAME,
    MAX_OUTPUT,
    MAX_RESULT,
    STEP_MAX,
    VERSION,
    Cancel,
    Close,
    Closed,
    Cost,
    Describe,
    Frame,
    Keepalive,
    Log,
    NodeCatalogue,
    NodeDescription,
    Open,
    Progress,
    ProtocolError,
    Ready,
    Resource,
    Run,
    decode,
    dump,
    encode,
    frame_size,
)
from isolane.results import PAUSE_MAX_S, Code, StepError, StepResult
from isolane.runner_context import check_kept
from isolane.text import MESSAGE_MAX

text = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=40)
integers = st.integers(min_value=-(2**63), max_value=2**63)
numbers = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | integers | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=10,
)
objects = st.dictionaries(text, values, max_size=4)
descriptions = st.builds(
    NodeDescription,
    name=text,
    parameters=objects,
    idempotent=st.booleans(),
    deterministic=st.booleans(),
    uses_key=st.booleans(),
    summary=text,
)
frames: st.SearchStrategy[Frame] = st.one_of(
    st.sampled_from([Describe(), Cancel(), Close(), Keepalive(), Ready()]),
    st.builds(
        Open,
        execution_id=text,
        tenant_id=text,
        user_id=text,
        request_id=text,
        epoch=integers,
    ),
    st.builds(
        Run,
        step=text,
        uses=text,
        parameters=objects,
        variables=objects,
        attempt=integers,
        seed=integers,
        timeout_s=numbers,
        idempotency_key=text,
    ),
    st.builds(
        NodeCatalogue,
        nodes=st.lists(descriptions, max_size=3).map(tuple),
        packages=st.dictionaries(text, text, max_size=3),
        python=text,
    ),
    st.builds(
        Log,
        step=text,
        level=st.sampled_from(["debug", "info", "warning", "error"]),
        message=text,
    ),
    st.builds(Progress, step=text, fraction=st.floats(0, 1), message=text),
    st.builds(
        Cost,
        step=text,
        kind=st.from_regex(COST_KIND, fullmatch=True),
        amount=st.floats(0, COST_MAX),
    ),
    st.builds(
        Resource,
        event=st.sampled_from(["disposed", "failed"]),
        name=text,
        resource_id=st.from_regex(RESOURCE_ID, fullmatch=True),
        step=text,
        error=text,
    ),
    st.builds(
        StepResult.succeeded,
        step=text,
        attempt=integers,
        output=values,
        variables=st.dictionaries(st.from_regex(VARIABLE, fullmatch=True), values, max_size=3),
        pause_s=st.floats(0, PAUSE_MAX_S),
    ),
    st.builds(
        StepResult.succeeded,
        step=text,
        attempt=integers,
        output=st.none(),
        pause_s=st.floats(0, PAUSE_MAX_S, exclude_min=True),
        question=text.filter(bool),
    ),
    st.builds(
        StepResult.failed,
        step=text,
        attempt=integers,
        code=st.sampled_from(Code),
        message=text,
        cause=st.none() | text,
        trace=text,
    ),
    st.builds(Closed, errors=st.lists(text, max_size=3).map(tuple)),
)

LOG, RESULT, RESOURCE = 67, 69, 72


def raw(number: int, payload: bytes, *, version: int = VERSION) -> bytes:
    return HEADER.pack(version, number, len(payload)) + payload


def log(**changes: Any) -> bytes:
    fields = {"step": "pay", "level": "info", "message": "hello"} | changes
    return raw(LOG, json.dumps(fields).encode())


def result(**changes: Any) -> bytes:
    fields = {"step": "pay", "attempt": 0, "status": "succeeded"} | changes
    return raw(RESULT, json.dumps(fields).encode())


def failure(**changes: Any) -> bytes:
    return result(status="failed", code="TIMEOUT", **changes)


@given(frames)
def test_a_frame_survives_the_wire(frame: Frame) -> None:
    assert decode(encode(frame)) == frame


@given(st.binary(max_size=200))
def test_garbage_is_refused_or_is_a_frame(data: bytes) -> None:
    try:
        frame = decode(data)
    except ProtocolError:
        return
    assert decode(encode(frame)) == frame


@given(frames, st.data())
def test_a_cut_frame_is_refused(frame: Frame, data: st.DataObject) -> None:
    whole = encode(frame)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ProtocolError, match="not one whole frame"):
        decode(whole[:cut])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (raw(LOG, b"{}", version=9), "protocol version 9 is not 1"),
        (raw(200, b"{}"), "frame type 200 is unknown"),
        (raw(LOG, b"{"), "Log: the payload is not JSON"),
        (raw(LOG, b"\xff\xfe"), "Log: the payload is not JSON"),
        (raw(LOG, b"[" * 60_000), "Log: the payload is not JSON"),
        (raw(LOG, b"[]"), "Log: expected object, got array"),
        (raw(LOG, b"NaN"), "Log: the payload is not JSON"),
        (raw(LOG, b"9" * 5_000), "Log: the payload is not JSON"),
        (raw(LOG, b'{"step":"pay","level":"info"}'), "Log: field 'message' is missing"),
        (log(extra=1), "Log: unknown field 'extra'"),
        (log(message=5), "Log.message: expected string, got integer"),
        (log(level="loud"), "Log.level: expected one of debug, info, warning, error"),
        (log(message="a\x00b"), "NUL or half a surrogate pair"),
        (log(message="a\ud800b"), "NUL or half a surrogate pair"),
        (raw(RESULT, b'{"step":"a","attempt":true,"status":"succeeded"}'), "got boolean"),
        (
            raw(RESULT, b'{"step":"a","attempt":0,"status":"failed"}'),
            "a code if, and only if, it failed",
        ),
        (raw(RESULT, b'{"step":"a","attempt":0,"status":"failed","code":"X"}'), "expected one of"),
        (raw(68, b'{"step":"a","fraction":2,"message":""}'), "not between 0 and 1"),
        (raw(70, b'{"errors":[1]}'), r"Closed.errors\[0\]: expected string"),
        (raw(71, b'{"step":"a","kind":"Tokens","amount":1}'), "Cost: kind 'Tokens' does not match"),
        (raw(71, b'{"step":"a","kind":"tokens\\n","amount":1}'), "Cost: kind .* does not match"),
        (raw(71, b'{"step":"a","kind":"tokens","amount":-1}'), "amount -1.0 is not between 0"),
        (raw(71, b'{"step":"a","kind":"tokens","amount":1e13}'), "is not between 0 and 1e.12"),
        (raw(71, b'{"step":"a","kind":"tokens","amount":1e999}'), "Cost: the payload is not JSON"),
        (
            raw(69, b'{"step":"a","attempt":1,"output":[-1e999]}'),
            "StepResult: the payload is not JSON",
        ),
        (
            raw(68, b'{"step":"a","fraction":0,"message":"%s"}' % (b"x" * 2001)),
            "Progress: message has 2001 characters, over 2000",
        ),
        (result(pause_s=-1), "pause_s -1.0 is not between 0"),
        (result(pause_s=367 * 86400), "pause_s 31708800.0 is not between 0"),
        (result(variables={"a b": 1}), "variable 'a b' does not match"),
        (result(variables=[]), "StepResult.variables: expected object, got array"),
        (result(trace="x"), "only a failed result has a trace"),
        (failure(variables={"a": 1}), "neither sets variables, nor pauses, nor asks"),
        (failure(message="x" * 2_001), "its message or cause is too long"),
        (failure(cause="x" * 201), "its message or cause is too long"),
        (failure(pause_s=1), "neither sets variables, nor pauses, nor asks"),
        (failure(question="Pay?"), "neither sets variables, nor pauses, nor asks"),
        (result(question=5, pause_s=1), "StepResult.question: expected string, got integer"),
        (result(question="Pay?"), "a question has a time to be answered in, and no output yet"),
        (result(question="Pay?", pause_s=1, output=0), "and no output yet"),
        (
            result(question="x" * 2_001, pause_s=1),
            "a question of 2001 characters is over the limit of 2000",
        ),
        (failure(trace="x" * 16_001), "a trace of 16001 characters is over the limit of 16000"),
    ],
)
def test_a_bad_frame_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode(data)


def test_an_escaped_backslash_before_u0000_is_no_nul() -> None:
    frame = Log(step="a", level="info", message="\\u0000 \\\\ud800 \\")
    assert decode(encode(frame)) == frame


def test_a_too_large_frame_is_refused_by_its_header() -> None:
    with pytest.raises(ProtocolError, match="Log: 4194305 bytes are over the limit"):
        frame_size(HEADER.pack(VERSION, LOG, MAX_FRAME + 1))
    with pytest.raises(ProtocolError, match="over the limit"):
        frame_size(HEADER.pack(VERSION, RESULT, MAX_RESULT + 1))


@pytest.mark.parametrize("part", ["output", "variables"])
def test_a_result_may_be_as_large_as_its_parts_but_no_part_larger(part: str) -> None:
    fits, large = {"x": "y" * (MAX_OUTPUT - 8)}, {"x": "y" * MAX_OUTPUT}
    both = StepResult.succeeded(step="a", attempt=0, output=fits, variables=fits)
    assert decode(encode(both)) == both
    with pytest.raises(ProtocolError, match=rf"StepResult.{part}: \d+ bytes are over 1048576"):
        decode(result(**{part: large}))


def test_the_longest_trace_passes_in_the_widest_encoding() -> None:
    frame = StepResult.failed(
        step="a", attempt=0, code=Code.UNKNOWN_ERROR, message="\x01" * 9_999, trace="\x01" * 16_000
    )
    assert decode(encode(frame)) == frame


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"x": "y" * (MAX_FRAME + 1)}, "over the limit"),
        ({"x": {1, 2}}, "set is not a JSON type"),
        ({"x": float("inf")}, "not JSON"),
        ({"x": "\x00"}, "NUL"),
        ({"x": "\ud800"}, "not JSON"),
    ],
)
def test_the_sender_refuses_what_the_receiver_would(parameters: Any, reason: str) -> None:
    frame = Run(
        step="a",
        uses="n",
        parameters=parameters,
        variables={},
        attempt=0,
        seed=1,
        timeout_s=1.0,
        idempotency_key="k",
    )
    with pytest.raises(ProtocolError, match=reason):
        encode(frame)


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"x": value}
    return value


def test_a_value_has_so_many_levels_and_no_more() -> None:
    assert json.loads(dump(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    for levels in (MAX_DEPTH + 1, 600, 900, 100_000):
        with pytest.raises(ProtocolError):
            dump(nested(levels))
    with pytest.raises(ProtocolError, match="deeper than 100 levels"):
        dump(nested(MAX_DEPTH + 1))


def test_a_cycle_is_no_json() -> None:
    value: list[Any] = []
    value.extend([value, value])
    with pytest.raises(ProtocolError, match="not JSON"):
        dump(value)


def test_the_deepest_value_survives_the_wire_and_a_deeper_one_is_refused_on_both_sides() -> None:
    frame = StepResult.succeeded(step="a", attempt=0, output=nested(MAX_DEPTH))
    assert decode(encode(frame)) == frame
    deeper = {"step": "a", "attempt": 0, "status": "succeeded", "output": nested(MAX_DEPTH + 1)}
    with pytest.raises(ProtocolError, match="deeper than 100 levels"):
        encode(StepResult(**deeper))
    with pytest.raises(ProtocolError, match="deeper than 100 levels"):
        decode(raw(RESULT, json.dumps(deeper).encode()))


def test_a_step_that_returns_a_deeper_value_fails_as_with_all_that_cannot_be_kept() -> None:
    check_kept("node n returned", nested(MAX_DEPTH))
    with pytest.raises(StepError, match=r"returned what cannot be kept: .*deeper") as failed:
        check_kept("node n returned", nested(MAX_DEPTH + 1))
    assert failed.value.code is Code.POLICY_VIOLATION


@pytest.mark.parametrize(
    "frame",
    [
        Log(step="a", level="info", message="", nonce="n"),
        Progress(step="a", fraction=0.5, message="", nonce="n"),
        Cost(step="a", kind="eur", amount=1.0, nonce="n"),
        StepResult(step="a", attempt=0, status="succeeded", nonce="n"),
    ],
)
def test_what_an_attempt_sends_carries_its_nonce(frame: Frame) -> None:
    assert getattr(decode(encode(frame)), "nonce", None) == "n"


def resource(**changes: Any) -> bytes:
    fields = {"event": "disposed", "name": "db", "resource_id": f"database_{1:032x}"} | changes
    return raw(RESOURCE, json.dumps(fields).encode())


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"resource_id": "iso_1"}, "resource_id 'iso_1' does not match"),
        ({"step": "s" * (STEP_MAX + 1)}, f"step has {STEP_MAX + 1} characters"),
        ({"error": "x" * (MESSAGE_MAX + 1)}, f"error has {MESSAGE_MAX + 1} characters"),
        ({"event": "allocated", "error": "x"}, "error must be empty for allocated"),
        ({"event": "reused", "error": "x"}, "error must be empty for reused"),
    ],
)
def test_what_is_said_of_a_resource_is_bounded(changes: dict[str, str], complaint: str) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        decode(resource(**changes))


def test_the_longest_that_may_be_said_of_a_resource_gets_through() -> None:
    frame = decode(resource(step="s" * STEP_MAX, error="ü" * MESSAGE_MAX))
    assert isinstance(frame, Resource)
    assert (len(frame.step), len(frame.error)) == (STEP_MAX, MESSAGE_MAX)
