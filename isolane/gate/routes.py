"""The routes of a run: the addresses inside its sandbox at which the gate listens, and the names for them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from isolane.protocol import ProtocolError


class LoopbackPair(NamedTuple):
    """An address of the sandbox's own in both families."""

    v4: str
    v6: str


class Listener(NamedTuple):
    """A place to listen at; `route` is the worker's number for where it leads."""

    route: int
    address: LoopbackPair
    port: int


@dataclass(frozen=True, kw_only=True)
class RouteTable:
    """All that a forwarder serves."""

    listeners: tuple[Listener, ...] = ()
    # In lower case, no dot at the end.
    names: Mapping[str, LoopbackPair] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return it as JSON."""
        return json.dumps({"listeners": self.listeners, "names": self.names}).encode()

    @classmethod
    def decode(cls, data: bytes) -> "RouteTable":
        """Return it from JSON, or raise ProtocolError."""
        try:
            fields: dict[str, Any] = json.loads(data)
            return cls(
                listeners=tuple(
                    Listener(int(route), LoopbackPair(*map(str, address)), int(port))
                    for route, address, port in fields["listeners"]
                ),
                names={
                    str(name): LoopbackPair(*map(str, address))
                    for name, address in fields["names"].items()
                },
            )
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            raise ProtocolError("ROUTES: not a table of routes") from None
