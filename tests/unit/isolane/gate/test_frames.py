"""isolane.gate.frames: round trips, and no bytes of a stranger that do harm."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolane.gate.frames import (
    CHUNK,
    FROM_FORWARDER,
    NAME_MAX,
    TO_FORWARDER,
    FrameKind,
    FrameReader,
    GateFrame,
    encode,
)
from isolane.protocol import HEADER, VERSION, ProtocolError

ALL = frozenset(FrameKind)
numbers = st.integers(0, 2**32 - 1)


def with_data(kind: FrameKind, least: int, most: int) -> st.SearchStrategy[GateFrame]:
    return st.binary(min_size=least, max_size=most).map(lambda data: GateFrame(kind, data=data))


frames = st.one_of(
    with_data(FrameKind.ROUTES, 0, 100),
    with_data(FrameKind.REFUSED_NAME, 1, NAME_MAX),
    st.tuples(numbers, st.binary(min_size=1, max_size=100)).map(
        lambda drawn: GateFrame(FrameKind.DATA, drawn[0], 0, drawn[1])
    ),
    st.tuples(st.sampled_from([FrameKind.CREDIT, FrameKind.DIAL]), numbers, numbers).map(
        lambda drawn: GateFrame(*drawn)
    ),
    st.tuples(st.sampled_from([FrameKind.END, FrameKind.RESET]), numbers).map(
        lambda drawn: GateFrame(*drawn)
    ),
    st.sampled_from([FrameKind.LISTENING, FrameKind.FLUSH, FrameKind.FLUSHED]).map(GateFrame),
)
cuts = st.lists(st.integers(1, 40), min_size=1, max_size=20)


def pieces(data: bytes, sizes: list[int]) -> list[bytes]:
    """Cut bytes into pieces of these sizes, again and again."""
    found, at, turn = [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        found.append(data[at : at + size])
        at, turn = at + size, turn + 1
    return found


@given(st.lists(frames, max_size=20), cuts)
def test_frames_come_out_as_they_went_in_however_they_are_cut(
    sent: list[GateFrame], sizes: list[int]
) -> None:
    reader = FrameReader(ALL)
    data = b"".join(map(encode, sent))
    found = [frame for piece in pieces(data, sizes) for frame in reader.feed(piece)]
    assert joined(found) == joined(sent)


def joined(found: list[GateFrame]) -> list[GateFrame]:
    """Make one of the DATA of a connection that comes in a row: bytes are yielded as they come."""
    result: list[GateFrame] = []
    for frame in found:
        before = result[-1] if result else None
        is_more = frame.kind is FrameKind.DATA and before is not None
        if is_more and before is not None and before[:2] == frame[:2]:
            result[-1] = before._replace(data=bytes(before.data) + frame.data)
        else:
            result.append(frame._replace(data=bytes(frame.data)))
    return result


headers = st.builds(
    HEADER.pack,
    st.sampled_from([VERSION, VERSION, VERSION, 0, 255]),
    st.sampled_from([*ALL, 0, 1, 255]),
    st.sampled_from([0, 1, 4, 8, 255, CHUNK + 4, CHUNK + 5, 2**32 - 1]),
)
garbage = st.lists(st.one_of(st.binary(max_size=60), headers, frames.map(encode)), max_size=12)


@given(garbage.map(b"".join), cuts)
def test_any_bytes_are_frames_or_a_protocol_error(data: bytes, sizes: list[int]) -> None:
    reader = FrameReader(FROM_FORWARDER)
    with contextlib.suppress(ProtocolError):
        for piece in pieces(data, sizes):
            for frame in reader.feed(piece):
                assert frame.kind in FROM_FORWARDER
            assert len(reader._rest) <= HEADER.size + 4 + CHUNK


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        (FrameKind.DATA, 4),  # no byte
        (FrameKind.DATA, 4 + CHUNK + 1),
        (FrameKind.DATA, 10**9),
        (FrameKind.CREDIT, 7),
        (FrameKind.CREDIT, 9),
        (FrameKind.DIAL, 4),
        (FrameKind.END, 5),
        (FrameKind.RESET, 0),
        (FrameKind.LISTENING, 1),
        (FrameKind.FLUSHED, 1),
        (FrameKind.REFUSED_NAME, 0),
        (FrameKind.REFUSED_NAME, NAME_MAX + 1),
        (FrameKind.ROUTES, 256 * 1024 + 1),
    ],
)
def test_a_wrong_size_is_refused_by_the_header_alone(kind: FrameKind, size: int) -> None:
    with pytest.raises(ProtocolError, match=f"{kind.name}: {size} bytes"):
        list(FrameReader(ALL).feed(HEADER.pack(VERSION, kind, size)))


@pytest.mark.parametrize(
    ("accepted", "kind"),
    [
        (FROM_FORWARDER, FrameKind.ROUTES),
        (FROM_FORWARDER, FrameKind.FLUSH),
        (TO_FORWARDER, FrameKind.DIAL),
        (TO_FORWARDER, FrameKind.LISTENING),
        (TO_FORWARDER, FrameKind.REFUSED_NAME),
        (TO_FORWARDER, FrameKind.FLUSHED),
    ],
)
def test_a_side_takes_only_what_the_other_may_send(
    accepted: frozenset[FrameKind], kind: FrameKind
) -> None:
    with pytest.raises(ProtocolError, match=f"frame type {kind:d} is not expected"):
        list(FrameReader(accepted).feed(HEADER.pack(VERSION, kind, 8)))


def test_unknown_kinds_and_versions_are_refused() -> None:
    with pytest.raises(ProtocolError, match="frame type 99"):
        list(FrameReader(ALL).feed(HEADER.pack(VERSION, 99, 0)))
    with pytest.raises(ProtocolError, match="version 9"):
        list(FrameReader(ALL).feed(HEADER.pack(9, FrameKind.LISTENING, 0)))


def test_what_came_before_an_error_is_still_yielded() -> None:
    data = encode(GateFrame(FrameKind.END, 5)) + struct.pack("!BBI", VERSION, 99, 0)
    found = FrameReader(ALL).feed(data)
    assert next(found) == GateFrame(FrameKind.END, 5)
    with pytest.raises(ProtocolError):
        next(found)


def test_frames_beyond_the_most_of_a_call_wait_for_the_next_one() -> None:
    sent = [
        GateFrame(FrameKind.END, 1),
        GateFrame(FrameKind.DATA, 2, 0, b"ab"),
        GateFrame(FrameKind.END, 3),
    ]
    reader = FrameReader(ALL)
    assert list(reader.feed(b"".join(map(encode, sent)), most=1)) == sent[:1]
    assert joined(list(reader.feed(b"", most=1))) == sent[1:2]
    assert list(reader.feed(encode(sent[0]))) == [sent[2], sent[0]]
