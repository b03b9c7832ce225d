"""Connections to the broker: kombu's, without needless work, and robust while the broker is away.

Kombu creates a Redis client for every command, which takes longer than the command; here a channel keeps one. Kombu
also deletes the unacknowledged note of every message, even of those taken without one. Unreadable messages are dropped.

Timing: request-time and background-worker.
Model: sync.
Guarantee: best-effort; a message is a wake-up.
Failure: a message that cannot be published raises; a consumer reconnects every second.
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
        """Acknowledge a message only if a note of it exists."""
        if delivery_tag in (self.qos._delivered or ()):
            super().basic_ack(delivery_tag, multiple=multiple)

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]  # its stub lacks it
        except (ValueError, RecursionError):  # delivery raises neither, see LaneTransport
            self.connection.dropped("a lane", "it is not JSON")
            return True

    def _receive_one(self, client: Any) -> Any:
        try:
            return super()._receive_one(client)  # type: ignore[misc]  # likewise
        except (ValueError, RecursionError, LookupError):  # likewise
            self.connection.dropped("a channel", "it cannot be read")
            return True

    def close(self) -> None:
        """Close, and tell the broker; skip that if the broker does not answer.

        When Celery stops a worker that has lost its broker, the error would keep it from handing runs over.
        """
        try:
            super().close()
        except self.connection_errors:
            self.auto_delete_queues.clear()
            super().close()


class LaneTransport(redis.Transport):
    """Redis, with channels of this module; no message can end its consumer."""

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
        except Exception as error:  # noqa: BLE001 - no message may end the worker
            self.dropped(queue or "no queue", f"{type(error).__name__} while it was taken")


class _UsesLaneTransport(Connection):
    """Uses this module's transport for Redis, and kombu's for everything else."""

    def get_transport_cls(self) -> Any:
        """Replace kombu's transport."""
        found = super().get_transport_cls()
        return LaneTransport if found is redis.Transport else found

    def info(self) -> dict[str, Any]:
        """Describe the broker in a worker's statistics, without its password.

        Celery leaves the password out, but for a Unix socket it is a part of the address.
        """
        described = super().info()
        return {**described, "hostname": maybe_sanitize_url(described["hostname"])}


class _Pooled(_UsesLaneTransport, PooledConnection):
    """A connection lent for publishing."""


class _Pool(ConnectionPool):
    """Creates connections of this module's kind; kombu's pool creates its own kind."""

    def new(self) -> _Pooled:
        """Create a connection."""
        return _Pooled(self, **dict(self.connection._info(resolve=False)))  # type: ignore[arg-type]  # stub of its base


class LaneConnection(_UsesLaneTransport):
    """A connection for consuming; publishing goes through its pool."""

    def ensure_connection(self, *args: Any, **options: Any) -> Any:
        """Connect with a steady interval; kombu's grows to 30 s, during which runs wait."""
        steady = {
            "interval_start": RETRY_SECONDS,
            "interval_step": 0,
            "interval_max": RETRY_SECONDS,
        }
        return super().ensure_connection(*args, **{**steady, **options})

    def Pool(self, limit: int | None = None, **options: Any) -> _Pool:  # noqa: N802 - their name
        """Return a pool of connections of this module's kind."""
        return _Pool(self, limit, **options)
