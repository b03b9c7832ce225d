"""The wire protocol between worker and runner: typed, versioned, size-limited frames.

A frame is a header of protocol version, frame type and payload length, then a JSON object in
UTF-8. Both sides check with the same code, and refuse what they do not know.
"""

import json
import re
import struct
from dataclasses import dataclass
from typing import Any, Literal

from isolane.results import StepResult
from isolane.shapes import ShapeError, build

VERSION = 1
HEADER = struct.Struct("!BBI")
MAX_FRAME = 4 * 1024 * 1024  # bytes of payload
MAX_OUTPUT = 1024 * 1024  # bytes of a step's output as JSON
MAX_DEPTH = 100  # levels of a value; far from where Python's own recursion ends
_SMALL = 64 * 1024  # bytes; holds the longest line in the widest encoding

Level = Literal["debug", "info", "warning", "error"]

# PostgreSQL stores neither NUL nor half of a surrogate pair, and our own encoder escapes no others.
_UNSTORABLE = re.compile(rb"(?<!\\)(?:\\\\)*\\u(?:0000|[dD][89a-fA-F])")


class ProtocolError(ValueError):
    """The bytes, or the values to be sent, break the protocol."""


@dataclass(frozen=True, kw_only=True)
class Describe:
    """Asks for the catalogue."""


@dataclass(frozen=True, kw_only=True)
class Open:
    """Opens the context of one placement."""

    execution_id: str
    tenant_id: str
    epoch: int


@dataclass(frozen=True, kw_only=True)
class Run:
    """Runs one attempt of one step in the open context."""

    step: str
    uses: str
    parameters: dict[str, Any]
    attempt: int
    seed: int
    timeout_s: float
    idempotency_key: str


@dataclass(frozen=True, kw_only=True)
class Cancel:
    """Asks the execution to stop."""


@dataclass(frozen=True, kw_only=True)
class Close:
    """Closes the context."""


@dataclass(frozen=True, kw_only=True)
class Keepalive:
    """Says that the worker still holds its lease."""


@dataclass(frozen=True, kw_only=True)
class NodeDescription:
    """What a worker knows of a node without importing it."""

    name: str
    parameters: dict[str, Any]  # JSON Schema
    idempotent: bool
    deterministic: bool


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """What this runner can run."""

    nodes: tuple[NodeDescription, ...]
    packages: dict[str, str]  # name to version
    python: str


@dataclass(frozen=True, kw_only=True)
class Ready:
    """The context is open."""


@dataclass(frozen=True, kw_only=True)
class Log:
    """One line from a step."""

    step: str
    level: Level
    message: str


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a step is."""

    step: str
    fraction: float
    message: str

    def __post_init__(self) -> None:
        if not 0 <= self.fraction <= 1:
            raise ValueError("fraction is not between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class Closed:
    """The context is gone; errors say what its teardown could not do."""

    errors: tuple[str, ...]


ToRunner = Describe | Open | Run | Cancel | Close | Keepalive
FromRunner = Catalogue | Ready | Log | Progress | StepResult | Closed
Frame = ToRunner | FromRunner

# Frame type to class and the largest payload it may have.
_FRAMES: dict[int, tuple[type[Frame], int]] = {
    1: (Describe, _SMALL),
    2: (Open, _SMALL),
    3: (Run, MAX_FRAME),
    4: (Cancel, _SMALL),
    5: (Close, _SMALL),
    6: (Keepalive, _SMALL),
    65: (Catalogue, MAX_FRAME),
    66: (Ready, _SMALL),
    67: (Log, _SMALL),
    68: (Progress, _SMALL),
    69: (StepResult, MAX_OUTPUT + _SMALL),
    70: (Closed, _SMALL),
}
_FRAME_DEPTH = 1  # the frame is an object around its values
_NUMBERS = {cls: number for number, (cls, _) in _FRAMES.items()}


def encode(frame: Frame) -> bytes:
    """Return the bytes of a frame, or raise ProtocolError."""
    number = _NUMBERS[type(frame)]
    _shaped(type(frame), vars(frame))
    payload = _dump(vars(frame), MAX_DEPTH + _FRAME_DEPTH)
    header = HEADER.pack(VERSION, number, min(len(payload), 0xFFFFFFFF))
    frame_size(header)
    return header + payload


def decode(data: bytes) -> Frame:
    """Return the frame that these bytes are, or raise ProtocolError."""
    if len(data) < HEADER.size or len(data) != frame_size(data[: HEADER.size]):
        raise ProtocolError(f"{len(data)} bytes are not one whole frame")
    cls, _ = _FRAMES[data[1]]
    return _shaped(cls, _load(data[HEADER.size :], cls.__name__))


def frame_size(header: bytes) -> int:
    """Return the size of the whole frame with this header, refusing it before it is read."""
    version, number, length = HEADER.unpack(header)
    if version != VERSION:
        raise ProtocolError(f"protocol version {version} is not {VERSION}")
    if number not in _FRAMES:
        raise ProtocolError(f"frame type {number} is unknown")
    cls, limit = _FRAMES[number]
    if length > limit:
        raise ProtocolError(f"{cls.__name__}: {length} bytes are over the limit of {limit}")
    return HEADER.size + int(length)


def dump(value: Any) -> bytes:
    """Return a value as JSON that can be sent and stored, or raise ProtocolError."""
    return _dump(value, MAX_DEPTH)


def is_too_deep(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Say whether a value without cycles has more levels than the limit, without recursion."""
    level = [value]
    for _ in range(limit):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [item for item in value.values() if isinstance(item, dict | list | tuple)]
    if isinstance(value, list | tuple):
        return [item for item in value if isinstance(item, dict | list | tuple)]
    return []


def _dump(value: Any, depth: int) -> bytes:
    try:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
        )
        payload = text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ProtocolError(f"no JSON: {error}") from None
    _refuse_unstorable(payload)
    _refuse_depth(value, depth)
    return payload


def _plain(value: Any) -> dict[str, Any]:
    if isinstance(value, NodeDescription):
        return vars(value)
    raise TypeError(f"{type(value).__name__} is not a JSON type")


def _load(payload: bytes, name: str) -> Any:
    try:
        text = payload.decode()
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ProtocolError(f"{name}: the payload is no JSON") from None
    _refuse_unstorable(payload)
    _refuse_depth(value, MAX_DEPTH + _FRAME_DEPTH)
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _refuse_unstorable(payload: bytes) -> None:
    if _UNSTORABLE.search(payload):
        raise ProtocolError("text with NUL or half a surrogate pair cannot be stored")


def _refuse_depth(value: Any, depth: int) -> None:
    if is_too_deep(value, depth):
        raise ProtocolError(f"values nested deeper than {MAX_DEPTH} levels cannot be kept")


def _shaped(cls: type[Frame], value: dict[str, Any]) -> Frame:
    try:
        frame: Frame = build(cls, value, cls.__name__)
    except ShapeError as error:
        raise ProtocolError(str(error)) from None
    return frame
