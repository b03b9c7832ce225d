"""The run cache: named values that end with the placement, through one connection of redis-py per handle.

Timing: connecting and each command take 5 seconds at most.
Model: sync; threads may share a handle, their commands are serialised.
Guarantee: tagged by its client name; only keys with the placement's prefix, each with a time to live.
Failure: StepError; after a connection error or dispose, the handle raises and never connects again.
"""

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from isolane.protocol import Grant, ProtocolError, dump
from isolane.providers.base import Provider
from isolane.results import Code, StepError
from isolane.shapes import build

SECONDS = 5.0
KEY_MAX = 1024  # bytes
TTL_MAX_S = 366 * 86_400.0
_CLOSED = "this cache handle is closed"


@dataclass(frozen=True, kw_only=True)
class CacheConfig:
    """The config of a definition; the platform knows where the cache is."""

    ttl_s: float = 3600.0  # for values that are set without one
    credentials: Literal["brokered", "inside"] = "brokered"  # where runs have a gate

    def __post_init__(self) -> None:
        _milliseconds(self.ttl_s)


@dataclass(frozen=True, kw_only=True)
class IssuedConfig(CacheConfig):
    """The config of a grant: the worker adds the address, the user and the prefix of this placement."""

    host: str
    port: int
    prefix: str
    username: str = ""  # not needed where a broker logs in
    tls: bool = False
    ca: str = ""  # certificates in PEM: the only authorities to trust; empty for the public ones


class CacheHandle:
    """JSON values by key, visible to this placement only."""

    def __init__(self, connection: Any, *, prefix: str, ttl_s: float, user: str) -> None:
        self._connection = connection  # of redis-py, which is not typed
        self._prefix = prefix
        self._ttl_s = ttl_s
        self._user = user
        self._lock = threading.Lock()
        self._closed = False
        self._broken = False

    def get(self, key: str) -> Any:
        """Return the value of a key, None if it has none."""
        (found,) = self._ask(("GET", self._key(key)))
        return None if found is None else json.loads(found)

    def set(self, key: str, value: Any, ttl_s: float | None = None) -> None:
        """Store a value, for `ttl_s` seconds or the definition's default."""
        self._ask(("SET", self._key(key), _json(key, value), "PX", self._ttl(ttl_s)))

    def delete(self, key: str) -> bool:
        """Delete a key; true if it existed."""
        (number,) = self._ask(("DEL", self._key(key)))
        return bool(number)

    def incr(self, key: str, by: int = 1) -> int:
        """Add to a whole number, which starts at 0, and return it."""
        if isinstance(by, bool) or not isinstance(by, int):
            raise TypeError(f"by must be an int, not {type(by).__name__}")
        name = self._key(key)
        # The first command creates it with a time to live, if it is missing; the second alone would set none.
        _, number = self._ask(
            ("SET", name, "0", "PX", self._ttl(None), "NX"), ("INCRBY", name, str(by))
        )
        return int(number)

    def exists(self, key: str) -> bool:
        """Say whether a key has a value."""
        (number,) = self._ask(("EXISTS", self._key(key)))
        return bool(number)

    def check(self) -> dict[str, Any]:
        """Ask the server for a sign of life and its id of this client."""
        _, number = self._ask(("PING",), ("CLIENT", "ID"))
        return {"client_id": int(number), "user": self._user}

    @property
    def is_broken(self) -> bool:
        """True if its connection is lost; waits for a command under way."""
        with self._lock:
            return self._broken

    def close(self) -> None:
        """Close it for good, also during a command of another thread."""
        self._closed = True
        self._connection.disconnect()

    def _key(self, key: str) -> bytes:
        if not isinstance(key, str):
            raise TypeError(f"a key must be a str, not {type(key).__name__}")
        name = key.encode("utf-8", "surrogatepass")
        if not 0 < len(name) <= KEY_MAX:
            raise ValueError(f"key {key[:64]!r} has {len(name)} bytes, not 1 to {KEY_MAX}")
        return self._prefix.encode() + name

    def _ttl(self, ttl_s: float | None) -> str:
        return str(_milliseconds(self._ttl_s if ttl_s is None else ttl_s))

    def _ask(self, *commands: tuple[str | bytes, ...]) -> list[Any]:
        with self._lock, self._errors():
            connection = self._connection
            connection.send_packed_command(connection.pack_commands(commands))
            # All answers are read before the first error is raised, or the next command would get them.
            answers = [_answer(connection) for _ in commands]
        for answer in answers:
            if isinstance(answer, Exception):
                raise StepError(Code.UNKNOWN_ERROR, f"the cache refuses: {answer}")
        return answers

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        import redis  # noqa: PLC0415 - only runtimes need the driver

        if self._closed:
            raise RuntimeError(_CLOSED)
        if self._broken:
            raise StepError(
                Code.TRANSIENT_ERROR, "the cache cannot be asked: its connection is gone"
            )
        self._broken = True  # until all is read: an interruption here leaves answers unread
        try:
            yield
        except redis.TimeoutError:
            failure = StepError(Code.TIMEOUT, f"the cache did not answer within {SECONDS:g} s")
        except Exception as error:  # noqa: BLE001 - closed during a command, the driver raises anything
            reason = str(error) if isinstance(error, redis.RedisError) else type(error).__name__
            failure = StepError(Code.TRANSIENT_ERROR, f"the cache cannot be asked: {reason}")
        else:
            self._broken = False
            return
        self._connection.disconnect()
        if self._closed:
            raise RuntimeError(_CLOSED)
        raise failure


class Cache(Provider[CacheHandle]):
    """Handles of the run cache."""

    type = "cache"
    config = CacheConfig
    drivers = ("redis.connection",)

    def create(self, grant: Grant, tag: str) -> CacheHandle:
        """Connect as the user that was issued to this placement, or to the broker that logs in as that user."""
        from redis.connection import Connection, SSLConnection  # noqa: PLC0415 - only runtimes need it

        config: IssuedConfig = build(IssuedConfig, grant.config, "config")
        has_tls = config.tls and not grant.brokered
        login: dict[str, Any] = {
            "username": config.username,
            "password": grant.secrets.get("password"),
        }
        trust: dict[str, Any] = {"ssl_ca_data": config.ca} if has_tls and config.ca else {}
        connection: Any = (SSLConnection if has_tls else Connection)(
            host=config.host if has_tls else grant.address or config.host,  # TLS proves the name
            port=config.port,
            **({} if grant.brokered else login),
            **trust,
            client_name=tag,
            driver_info=None,  # the user has no right to the command that sends it
            protocol=2,
            socket_timeout=SECONDS,
            socket_connect_timeout=SECONDS,
        )
        try:
            connection.connect()
        except BaseException:
            connection.disconnect()
            raise
        connection.connect_check_health = _never_again
        return CacheHandle(
            connection, prefix=config.prefix, ttl_s=config.ttl_s, user=config.username
        )

    def check(self, handle: CacheHandle) -> dict[str, Any]:
        """Ask the server for a sign of life."""
        return handle.check()

    def is_broken(self, handle: CacheHandle) -> bool:
        """Say whether its connection was lost."""
        return handle.is_broken

    def dispose(self, handle: CacheHandle) -> None:
        """Close the connection."""
        handle.close()


def _never_again(**_options: bool) -> NoReturn:
    """Refuse to reconnect: the driver calls this when it finds its connection lost."""
    from redis import ConnectionError as GoneError  # noqa: PLC0415

    raise GoneError("its connection is gone")


def _answer(connection: Any) -> Any:
    from redis import ResponseError  # noqa: PLC0415

    try:
        return connection.read_response()
    except ResponseError as error:
        return error


def _json(key: str, value: Any) -> bytes:
    try:
        return dump(value)
    except ProtocolError as error:
        raise ValueError(f"key {key[:64]!r} cannot hold {type(value).__name__}: {error}") from None


def _milliseconds(seconds: float) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"ttl_s must be a number, not {type(seconds).__name__}")
    if not 0 < seconds <= TTL_MAX_S:
        raise ValueError(f"ttl_s: {seconds!r} is not above 0, up to {TTL_MAX_S:.0f}")
    return max(1, round(seconds * 1000))
