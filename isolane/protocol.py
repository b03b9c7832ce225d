"""The wire protocol between worker and runner: typed, versioned, size-limited frames.

A frame is a header of protocol version, frame type and payload length, then a JSON object in
UTF-8. The receiver checks all of a frame, and refuses what it does not know. The sender checks only
the values inside: the fields of the classes are checked by mypy.
"""

import json
import re
import struct
from dataclasses import dataclass, field
from typing import Any, Literal

from isolane.names import COST_KIND, RESOURCE_ID
from isolane.numbers import DECODER
from isolane.results import StepResult
from isolane.shapes import ShapeError, build
from isolane.text import MESSAGE_MAX

VERSION = 1
HEADER = struct.Struct("!BBI")
MAX_FRAME = 4 * 1024 * 1024  # bytes of payload
MAX_OUTPUT = 1024 * 1024  # bytes of a step's output as JSON, and of the variables that it sets
MAX_DEPTH = 100  # levels of a value; far from where Python's own recursion ends
_SMALL = 64 * 1024  # bytes; holds the longest line in the widest encoding
MAX_RESULT = 2 * MAX_OUTPUT + 2 * _SMALL  # output, variables, and the longest trace
COST_MAX = 1e12  # of one report
COSTS_MAX = 1000  # reports of one attempt of a step
STEP_MAX = 200  # characters of a step's path

Level = Literal["debug", "info", "warning", "error"]
ResourceScope = Literal["execution", "step"]
# allocated: opened. reused: used by a later step. disposed: closed, perhaps with an error. failed: never opened.
ResourceEvent = Literal["allocated", "reused", "disposed", "failed"]

# PostgreSQL stores neither NUL nor half of a surrogate pair, and the encoder below escapes no others.
_UNSTORABLE = re.compile(rb"(?<!\\)(?:\\\\)*\\u(?:0000|[dD][89a-fA-F])")


class ProtocolError(ValueError):
    """The bytes, or the values to be sent, break the protocol."""


@dataclass(frozen=True, kw_only=True)
class Describe:
    """Asks for the catalogue."""


@dataclass(frozen=True, kw_only=True)
class Grant:
    """A resource that the run declared, with the config and secrets that open it."""

    name: str  # under which steps ask for it
    type: str
    definition: str
    scope: ResourceScope
    config: dict[str, Any]  # for its provider
    secrets: dict[str, str] = field(repr=False)  # by the names that its provider knows
    address: str = ""  # the IP address to connect to: that of its host, or of the gate's way to it
    eager: bool = False  # opened with the context
    brokered: bool = False  # the gate speaks TLS and logs in: connect in clear, without a secret


@dataclass(frozen=True, kw_only=True)
class Open:
    """Opens the context of one placement."""

    execution_id: str
    tenant_id: str
    user_id: str  # who submitted it
    request_id: str  # of the request that did
    epoch: int
    resources: tuple[Grant, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Run:
    """Runs one attempt of one step in the open context."""

    step: str
    uses: str
    parameters: dict[str, Any]
    variables: dict[str, Any]  # the run's own, as they are now
    attempt: int
    seed: int
    timeout_s: float
    idempotency_key: str
    nonce: str = ""  # random; what the attempt sends must repeat it


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
    """The description of a node, for workers, which do not import it."""

    name: str
    parameters: dict[str, Any]  # JSON Schema
    idempotent: bool
    deterministic: bool
    uses_key: bool = False  # sends its idempotency key to a remote server that honours it
    summary: str = ""  # the first line of its docstring


@dataclass(frozen=True, kw_only=True)
class NodeCatalogue:
    """The nodes that this runner has."""

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
    nonce: str = field(default="", compare=False)  # of the RUN that it belongs to


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The progress of a step."""

    step: str
    fraction: float
    message: str
    nonce: str = field(default="", compare=False)  # of the RUN that it belongs to

    def __post_init__(self) -> None:
        if not 0 <= self.fraction <= 1:
            raise ValueError("fraction is not between 0 and 1")
        if len(self.message) > MESSAGE_MAX:
            raise ValueError(f"message has {len(self.message)} characters, over {MESSAGE_MAX}")


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The use of something that is paid for."""

    step: str
    kind: str
    amount: float
    nonce: str = field(default="", compare=False)  # of the RUN that it belongs to

    def __post_init__(self) -> None:
        if not COST_KIND.fullmatch(self.kind):
            raise ValueError(f"kind {self.kind[:64]!r} does not match {COST_KIND.pattern}")
        if not 0 <= self.amount <= COST_MAX:
            raise ValueError(f"amount {self.amount!r} is not between 0 and {COST_MAX:g}")


@dataclass(frozen=True, kw_only=True)
class Resource:
    """An event of a handle to a declared resource."""

    event: ResourceEvent
    name: str  # of its grant
    resource_id: str  # of the handle: made by the runner, never used twice
    step: str = ""  # empty while the context opens or closes
    error: str = ""

    def __post_init__(self) -> None:
        if not RESOURCE_ID.fullmatch(self.resource_id):
            raise ValueError(
                f"resource_id {self.resource_id[:64]!r} does not match {RESOURCE_ID.pattern}"
            )
        if len(self.step) > STEP_MAX:
            raise ValueError(f"step has {len(self.step)} characters, over {STEP_MAX}")
        if len(self.error) > MESSAGE_MAX:
            raise ValueError(f"error has {len(self.error)} characters, over {MESSAGE_MAX}")
        if self.error and self.event in {"allocated", "reused"}:
            raise ValueError(f"error must be empty for {self.event}")


@dataclass(frozen=True, kw_only=True)
class Closed:
    """The context is closed; `errors` lists what its teardown could not do."""

    errors: tuple[str, ...]


ToRunner = Describe | Open | Run | Cancel | Close | Keepalive
FromRunner = NodeCatalogue | Ready | Log | Progress | Cost | Resource | StepResult | Closed
Frame = ToRunner | FromRunner

# Frame type to class and the largest payload it may have.
_FRAMES: dict[int, tuple[type[Frame], int]] = {
    1: (Describe, _SMALL),
    2: (Open, MAX_FRAME),
    3: (Run, MAX_FRAME),
    4: (Cancel, _SMALL),
    5: (Close, _SMALL),
    6: (Keepalive, _SMALL),
    65: (NodeCatalogue, MAX_FRAME),
    66: (Ready, _SMALL),
    67: (Log, _SMALL),
    68: (Progress, _SMALL),
    69: (StepResult, MAX_RESULT),
    70: (Closed, _SMALL),
    71: (Cost, _SMALL),
    72: (Resource, _SMALL),
}
_FRAME_DEPTH = 1  # the frame is an object around its values
_NUMBERS = {cls: number for number, (cls, _) in _FRAMES.items()}


def encode(frame: Frame) -> bytes:
    """Return the bytes of a frame, or raise ProtocolError."""
    number = _NUMBERS[type(frame)]
    payload = _dump(vars(frame), MAX_DEPTH + _FRAME_DEPTH)
    if len(payload) > _FRAMES[number][1]:
        raise _over_limit(number, len(payload))
    return HEADER.pack(VERSION, number, len(payload)) + payload


def decode(data: bytes) -> Frame:
    """Return the frame that these bytes are, or raise ProtocolError."""
    if len(data) < HEADER.size or len(data) != frame_size(data[: HEADER.size]):
        raise ProtocolError(f"{len(data)} bytes are not one whole frame")
    cls, _ = _FRAMES[data[1]]
    frame = _shaped(cls, _load(data[HEADER.size :], cls.__name__))
    if isinstance(frame, StepResult) and len(data) > MAX_OUTPUT:
        _refuse_large_parts(frame)
    return frame


def frame_size(header: bytes) -> int:
    """Return the size of the whole frame with this header, refusing it before it is read."""
    version, number, length = HEADER.unpack(header)
    if version != VERSION:
        raise ProtocolError(f"protocol version {version} is not {VERSION}")
    if number not in _FRAMES:
        raise ProtocolError(f"frame type {number} is unknown")
    if length > _FRAMES[number][1]:
        raise _over_limit(number, length)
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


def _plain(value: Any) -> dict[str, Any]:
    if isinstance(value, NodeDescription | Grant):
        return vars(value)
    raise TypeError(f"{type(value).__name__} is not a JSON type")


# Created once: json.dumps would create one for each frame.
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
)


def _dump(value: Any, depth: int) -> bytes:
    try:
        payload = _ENCODER.encode(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON: {error}") from None
    _refuse_unfit(value, payload, depth)
    return payload


def _load(payload: bytes, name: str) -> Any:
    try:
        value = DECODER.decode(payload.decode())
    except (ValueError, RecursionError):
        raise ProtocolError(f"{name}: the payload is not JSON") from None
    _refuse_unfit(value, payload, MAX_DEPTH + _FRAME_DEPTH)
    return value


def _refuse_unfit(value: Any, payload: bytes, depth: int) -> None:
    # The cheap test first: most text has no escape, and every level needs a bracket.
    if b"\\u" in payload and _UNSTORABLE.search(payload):
        raise ProtocolError("text with NUL or half a surrogate pair cannot be stored")
    if payload.count(b"{") + payload.count(b"[") > depth and is_too_deep(value, depth):
        raise ProtocolError(f"values nested deeper than {MAX_DEPTH} levels cannot be kept")


def _over_limit(number: int, length: int) -> ProtocolError:
    cls, limit = _FRAMES[number]
    return ProtocolError(f"{cls.__name__}: {length} bytes are over the limit of {limit}")


def _refuse_large_parts(result: StepResult) -> None:
    for name, value in (("output", result.output), ("variables", result.variables)):
        if (size := len(dump(value))) > MAX_OUTPUT:
            raise ProtocolError(f"StepResult.{name}: {size} bytes are over {MAX_OUTPUT}")


def _shaped(cls: type[Frame], value: dict[str, Any]) -> Frame:
    try:
        frame: Frame = build(cls, value, cls.__name__)
    except ShapeError as error:
        raise ProtocolError(str(error)) from None
    return frame
