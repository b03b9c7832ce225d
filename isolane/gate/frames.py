"""The frames of the gate channel, between a sandbox's forwarder and the worker: small and binary.

They share the header of `isolane.protocol`. A connection's number is given by the forwarder, in rising order.
"""

import math
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from isolane.protocol import HEADER, VERSION, ProtocolError

DATA_HEAD = struct.Struct("!BBII")  # of a DATA frame: the header, and the connection
# Bytes of one DATA frame at most: what is urgent waits for no more. With its head it fills whole pages of a pipe.
CHUNK = 64 * 1024 - DATA_HEAD.size
WINDOW = 4 * CHUNK  # bytes of one connection and direction that may be under way
NAME_MAX = 255  # bytes of a name that is looked up
_ROUTES_MAX = 256 * 1024
_CONNECTION = struct.Struct("!I")
_PAIR = struct.Struct("!II")


class FrameKind(IntEnum):
    """The kind of a frame, as its header has it."""

    ROUTES = 16  # to the forwarder, first: what to listen on, and names
    FLUSH = 17  # to the forwarder: to be answered once all that programs have sent is sent on
    DATA = 32  # both ways: bytes of a connection
    CREDIT = 33  # both ways: so many more bytes may be sent
    END = 34  # both ways: this direction of a connection is over
    RESET = 35  # both ways: a connection is over; answered by the same
    LISTENING = 80  # from the forwarder: the routes are open
    DIAL = 81  # from the forwarder: a new connection, and its route
    REFUSED_NAME = 82  # from the forwarder: a name that is none of the routes was looked up
    FLUSHED = 83  # from the forwarder: the answer to FLUSH


TO_FORWARDER = frozenset(
    FrameKind[name] for name in ("ROUTES", "FLUSH", "DATA", "CREDIT", "END", "RESET")
)
FROM_FORWARDER = frozenset(FrameKind) - {FrameKind.ROUTES, FrameKind.FLUSH}
# Least and most bytes of a payload.
_SIZES = {
    FrameKind.ROUTES: (0, _ROUTES_MAX),
    FrameKind.FLUSH: (0, 0),
    FrameKind.DATA: (_CONNECTION.size + 1, _CONNECTION.size + CHUNK),
    FrameKind.CREDIT: (_PAIR.size, _PAIR.size),
    FrameKind.END: (_CONNECTION.size, _CONNECTION.size),
    FrameKind.RESET: (_CONNECTION.size, _CONNECTION.size),
    FrameKind.LISTENING: (0, 0),
    FrameKind.DIAL: (_PAIR.size, _PAIR.size),
    FrameKind.REFUSED_NAME: (1, NAME_MAX),
    FrameKind.FLUSHED: (0, 0),
}


class GateFrame(NamedTuple):
    """One frame; the fields that its kind does not have are empty."""

    kind: FrameKind
    connection: int = 0
    number: int = 0  # of bytes in CREDIT, of the route in DIAL
    data: bytes | memoryview = b""


def encode(frame: GateFrame) -> bytes:
    """Return the bytes of a frame."""
    payload = _payload(frame)
    return HEADER.pack(VERSION, frame.kind, len(payload)) + payload


def head_of_data(connection: int, size: int) -> bytes:
    """Return what is before the bytes of a DATA frame."""
    length = _CONNECTION.size + size
    return DATA_HEAD.pack(VERSION, FrameKind.DATA, length, connection)


def _payload(frame: GateFrame) -> bytes:
    match frame.kind:
        case FrameKind.DATA:
            return _CONNECTION.pack(frame.connection) + bytes(frame.data)
        case FrameKind.CREDIT | FrameKind.DIAL:
            return _PAIR.pack(frame.connection, frame.number)
        case FrameKind.END | FrameKind.RESET:
            return _CONNECTION.pack(frame.connection)
        case _:
            return bytes(frame.data)


class FrameReader:
    """Cuts the bytes of a channel into frames; keeps one that is not whole, and those beyond the `most` of a call."""

    def __init__(self, accepted: frozenset[FrameKind]) -> None:
        self._accepted = accepted
        self._rest = b""
        self._connection = 0  # of the DATA frame whose bytes come
        self._data_left = 0

    def feed(self, chunk: bytes | memoryview, most: float = math.inf) -> Iterator[GateFrame]:
        """Yield the frames that are whole now, or raise ProtocolError. To be exhausted before the next call.

        The bytes of DATA are yielded as they come: a frame may become several, whose bytes are views of the chunk.
        After `most` frames the others wait for the next call.
        """
        data = memoryview(self._rest + chunk if self._rest else chunk)
        self._rest, start, frames = b"", 0, 0
        while start < len(data):
            if frames >= most:
                self._rest = bytes(data[start:])
                return
            if self._data_left:
                end = min(start + self._data_left, len(data))
                self._data_left -= end - start
                yield GateFrame(FrameKind.DATA, self._connection, 0, data[start:end])
                start, frames = end, frames + 1
                continue
            if (whole := self._end_of_frame(data, start)) is None:
                self._rest = bytes(data[start:])
                return
            if not self._data_left:
                yield _decoded(FrameKind(data[start + 1]), bytes(data[start + HEADER.size : whole]))
                frames += 1
            start = whole

    def _end_of_frame(self, data: memoryview, start: int) -> int | None:
        """Return the end of a frame, or of the head of DATA; None if that has not come yet."""
        if len(data) - start < HEADER.size:
            return None
        kind, length = self._checked(*HEADER.unpack_from(data, start))
        begin = start + HEADER.size
        if kind is FrameKind.DATA:
            if len(data) - begin < _CONNECTION.size:
                return None
            (self._connection,) = _CONNECTION.unpack_from(data, begin)
            self._data_left = length - _CONNECTION.size
            return begin + _CONNECTION.size
        return begin + length if len(data) - begin >= length else None

    def _checked(self, version: int, number: int, length: int) -> tuple[FrameKind, int]:
        """Refuse a frame by its header, before it is kept."""
        if version != VERSION:
            raise ProtocolError(f"protocol version {version} is not {VERSION}")
        if number not in self._accepted:
            raise ProtocolError(f"frame type {number} is not expected on the gate channel")
        kind = FrameKind(number)
        least, most = _SIZES[kind]
        if not least <= length <= most:
            raise ProtocolError(f"{kind.name}: {length} bytes are not between {least} and {most}")
        return kind, length


def _decoded(kind: FrameKind, payload: bytes) -> GateFrame:
    if kind in (FrameKind.CREDIT, FrameKind.DIAL):
        connection, number = _PAIR.unpack(payload)
        return GateFrame(kind, connection, number)
    if kind in (FrameKind.END, FrameKind.RESET):
        return GateFrame(kind, _CONNECTION.unpack(payload)[0])
    return GateFrame(kind, data=payload)
