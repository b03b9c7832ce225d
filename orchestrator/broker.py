"""Connections to the broker without what kombu does for nothing, and what they do while it is away.

Kombu makes a new Redis client for every command, which takes longer than the command; here a channel keeps one. And it
deletes the note of every message, also of those that were taken without one. What is no message of ours is dropped.

Timing: request-time and background-worker. Model: sync. Guarantee: best-effort; a message is a wake-up.
Failure: what cannot be published is raised; a consumer tries to connect again every second, for as long as it takes.
"""

from typing import Any

from kombu import Connection
from kombu.connection import ConnectionPool, PooledConnection
from kombu.transport import redis
from kombu.utils.url import maybe_sanitize_url

from orchestrator.broker_messages import Dropped, fault

RETRY_SECONDS = 1


class LaneChannel(redis.Channel):
    """Keeps its client for as long as its pool of connections."""

    connection: "LaneTransport"
    connection_errors: tuple[type[Exception], ...]
    _kept: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:  # noqa: FBT001, FBT002 - their signature
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]  # its stub lacks it
        if self._kept is None or self._kept.connection_pool is not self.pool:
            self._kept = super()._create_client()  # type: ignore[misc]  # likewise
        return self._kept

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:  # noqa: FBT001, FBT002 - their signature
        """Forget a message of which there is a note."""
        if delivery_tag in (self.qos._delivered or ()):
            super().basic_ack(delivery_tag, multiple=multiple)

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]  # its stub lacks it
        except (ValueError, RecursionError):  # what is delivered raises neither, see LaneTransport
            self.connection.dropped("a lane", "it is not JSON")
            return True

    def _receive_one(self, client: Any) -> Any:
        try:
            return super()._receive_one(client)  # type: ignore[misc]  # likewise
        except (ValueError, RecursionError, LookupError):  # likewise
            self.connection.dropped("a channel", "it cannot be read")
            return True

    def close(self) -> None:
        """Close, and tell the broker what goes with it; one that does not answer is told no more.

        Celery trips over the error when it stops a worker that has lost its broker, and hands nothing over then.
        """
        try:
            super().close()
        except self.connection_errors:
            self.auto_delete_queues.clear()
            super().close()


class LaneTransport(redis.Transport):
    """Redis, with channels of ours, where no message can end its consumer."""

    Channel = LaneChannel
    connection_errors: tuple[type[Exception], ...]
    channel_errors: tuple[type[Exception], ...]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.dropped = Dropped()

    def _deliver(self, message: Any, queue: str | None) -> None:
        if reason := fault(message):
            self.dropped(queue or "no queue", reason)
            return
        try:
            super()._deliver(message, queue)
        except (*self.connection_errors, *self.channel_errors):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not end the worker
            self.dropped(queue or "no queue", f"{type(error).__name__} while it was taken")


class _SpeaksLane(Connection):
    """Speaks Redis in our way, and everything else as kombu does."""

    def get_transport_cls(self) -> Any:
        """Put our transport in the place of kombu's."""
        found = super().get_transport_cls()
        return LaneTransport if found is redis.Transport else found

    def info(self) -> dict[str, Any]:
        """Tell about the broker, as workers do to whoever asks them for statistics: without its password.

        Celery leaves the password out, but for a Unix socket it is a part of the address.
        """
        told = super().info()
        return {**told, "hostname": maybe_sanitize_url(told["hostname"])}


class _Pooled(_SpeaksLane, PooledConnection):
    """One that is lent to whoever publishes."""


class _Pool(ConnectionPool):
    """Kombu's own makes connections of its own kind, whatever it was made from."""

    def new(self) -> _Pooled:
        """Make one more."""
        return _Pooled(self, **dict(self.connection._info(resolve=False)))  # type: ignore[arg-type]  # stub of its base


class LaneConnection(_SpeaksLane):
    """For consuming; what is published goes through its pool."""

    def ensure_connection(self, *args: Any, **options: Any) -> Any:
        """Connect; kombu would let more and more time pass between two tries, up to 30 s in which runs wait."""
        steady = {
            "interval_start": RETRY_SECONDS,
            "interval_step": 0,
            "interval_max": RETRY_SECONDS,
        }
        return super().ensure_connection(*args, **{**steady, **options})

    def Pool(self, limit: int | None = None, **options: Any) -> _Pool:  # noqa: N802 - their name
        """Lend connections of our kind."""
        return _Pool(self, limit, **options)
