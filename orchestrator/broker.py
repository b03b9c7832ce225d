"""Connections to the broker that make one Redis client per channel, where kombu makes a new one for every command.

Making a client takes longer than the command that it is made for: with it, sending a link took twice as long.
"""

from typing import Any

from kombu import Connection
from kombu.transport import redis


class LaneChannel(redis.Channel):
    """Keeps its client for as long as its pool of connections."""

    _kept: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:  # noqa: FBT001, FBT002 - their signature
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]  # its stub lacks it
        if self._kept is None or self._kept.connection_pool is not self.pool:
            self._kept = super()._create_client()  # type: ignore[misc]  # likewise
        return self._kept


class LaneTransport(redis.Transport):
    """Redis, with channels of ours."""

    Channel = LaneChannel


class LaneConnection(Connection):
    """Speaks Redis in our way, and everything else as kombu does."""

    def get_transport_cls(self) -> Any:
        """Put our transport in the place of kombu's."""
        found = super().get_transport_cls()
        return LaneTransport if found is redis.Transport else found
