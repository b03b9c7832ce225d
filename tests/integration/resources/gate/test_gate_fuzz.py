"""resources.gate.gate: whatever frames a runtime sends, they do what the protocol says, and stop nobody else."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolane.gate.frames import WINDOW, FrameKind, GateFrame, encode
from isolane.protocol import HEADER, VERSION
from resources.gate.record import ConnectionReason, ConnectionRecord
from tests.integration.resources.gate.remote import Remote, Runtime, a_remote, a_route, a_runtime
from tests.waiting import wait_for

HOST = "api.example.com"
MOST = 3  # connections at once
NUMBERS = [1, 1, 1, 2, 2, 3, 9]  # few, so that frames meet
DIAL, DATA, END, RESET, CREDIT, REFUSED_NAME = (
    FrameKind.DIAL, FrameKind.DATA, FrameKind.END, FrameKind.RESET, FrameKind.CREDIT, FrameKind.REFUSED_NAME,
)  # fmt: skip

numbers = st.sampled_from(NUMBERS)


def of(kind: FrameKind, *drawn: st.SearchStrategy[int]) -> st.SearchStrategy[GateFrame]:
    """Draw a frame's connection, and its number if its kind has one."""
    return st.tuples(*drawn).map(lambda fields: GateFrame(kind, *fields))


data = st.tuples(numbers, st.binary(min_size=1, max_size=20)).map(
    lambda drawn: GateFrame(DATA, drawn[0], 0, drawn[1])
)
frames = st.one_of(
    data,
    of(END, numbers),
    data,
    of(END, numbers),
    of(RESET, numbers),
    of(CREDIT, numbers, st.sampled_from([0, 1, WINDOW, 2**32 - 1])),
    of(DIAL, st.sampled_from([4, 5, 1, 0, 2**32 - 1]), st.sampled_from([0, 0, 1])),
    st.binary(min_size=1, max_size=9).map(lambda name: GateFrame(REFUSED_NAME, data=name)),
    st.sampled_from([GateFrame(FrameKind.LISTENING), GateFrame(FrameKind.FLUSHED)]),
)
UNFINISHED = encode(GateFrame(REFUSED_NAME, data=b"half of a name"))[:-5]
last_bytes = st.sampled_from(
    [
        b"",
        UNFINISHED,
        HEADER.pack(VERSION, DATA, 1 << 30),
        HEADER.pack(VERSION, FrameKind.ROUTES, 2) + b"{}",
        HEADER.pack(VERSION, 200, 0),
        HEADER.pack(VERSION + 1, DATA, 5),
        b"\xff\xfe\x00" * 7,
    ]
)


@dataclass
class Allowed:
    """What the gate may believe of these frames: the frames of a runtime up to its first breach."""

    dialled: list[int] = field(default_factory=list)
    reset: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    sent: dict[int, int] = field(default_factory=dict)  # bytes, by connection
    names: int = 0

    def is_breach(self, frame: GateFrame) -> bool | None:
        """Take a frame; None where it depends on what the gate has sent and the runtime has not looked at."""
        number = frame.connection
        is_known = number in self.dialled
        match frame.kind:
            case FrameKind.DIAL:
                if frame.number != 0 or number <= max(self.dialled, default=0):
                    return True
                self.dialled.append(number)
            case FrameKind.DATA:
                if not is_known or number in self.ended:
                    return True
                self.sent[number] = self.sent.get(number, 0) + len(frame.data)
                return None if number in self.reset else False
            case FrameKind.END | FrameKind.RESET if is_known:
                seen = self.ended if frame.kind is END else self.reset
                is_second = number in seen
                seen.add(number)
                return None if is_second or number in self.reset else False
            case FrameKind.CREDIT if is_known:
                return None if frame.number else False
            case FrameKind.REFUSED_NAME:
                self.names += 1
        return False


@pytest.fixture(scope="module")
def remote() -> Iterator[Remote]:
    """A server that sends back what comes."""
    with a_remote() as server:
        yield server


@pytest.fixture(scope="module")
def bystander(remote: Remote) -> Iterator[Runtime]:
    """The runtime of another run, at the same server."""
    with a_runtime(a_route(remote.port)) as runtime:
        yield runtime


@settings(max_examples=50, deadline=None, derandomize=True, database=None)
@given(
    connections=st.sampled_from([3, 2, 1, 0]),
    others=st.lists(frames, min_size=2, max_size=9),
    last=last_bytes,
)
def test_frames_are_believed_up_to_the_first_breach(
    remote: Remote, bystander: Runtime, connections: int, others: list[GateFrame], last: bytes
) -> None:
    sent = [*(GateFrame(DIAL, number) for number in range(1, connections + 1)), *others]
    allowed, breaches = Allowed(), list[bool | None]()
    for frame in sent:
        breaches.append(allowed.is_breach(frame))
        if breaches[-1]:  # is the last one: nothing behind it may cover it up
            sent, last = sent[: len(breaches)], b""
            break
    is_certain = None not in breaches
    must_fault = True in breaches or last not in (b"", UNFINISHED)
    with a_runtime(a_route(remote.port), connections=MOST) as runtime:
        runtime.send_bytes(b"".join(map(encode, sent)) + last)
        if must_fault:
            assert runtime.wait_for_fault()
        began = time.monotonic()
        runtime.gate.close()
        assert time.monotonic() - began < 3
        assert len(runtime.faults) <= 1
        assert runtime.faults or not must_fault
        assert not runtime.faults or must_fault or not is_certain
        _check_records(runtime.records, allowed, are_all=is_certain)
        assert not runtime.gate._dialled
    number = len(bystander.records) + 1
    bystander.dial(number, b"hello", ends=True)
    bystander.wait_for_frame(END, number)
    wait_for(lambda: len(bystander.records) == number, "its record")
    assert bystander.records[-1].received == len(b"hello")


def _check_records(records: list[ConnectionRecord], allowed: Allowed, *, are_all: bool) -> None:
    connections = [record for record in records if record.port]
    names = [record for record in records if not record.port]
    assert {record.host for record in connections} <= {HOST}
    assert {record.reason for record in names} <= {ConnectionReason.NOT_DECLARED}
    assert len(connections) <= len(allowed.dialled)
    assert len(names) <= allowed.names
    if are_all:
        assert (len(connections), len(names)) == (len(allowed.dialled), allowed.names)
    assert sum(record.sent for record in connections) <= sum(allowed.sent.values())
