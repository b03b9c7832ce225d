"""The broker of Redis and Valkey: logs in for a run, whose client connects in clear and without a password.

Timing: connecting and logging in take 5 seconds at most; then as long as the connection.
Model: asyncio; nothing is kept of a connection.
Guarantee: nothing of the run reaches the server before the login; the password is in no byte that goes to the run.
Failure: the client gets an error and ConnectionEnded is raised; OSError once the login is done.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from isolane.protocol import Grant
from isolane.providers.cache import SECONDS, IssuedConfig
from isolane.shapes import build
from resources.gate.brokers.base import Broker, Charge, Connect, RunConnection
from resources.gate.brokers.relay import relay
from resources.gate.brokers.share import Share
from resources.gate.brokers.streams import Proof, Streams, cause, opened, tls_context
from resources.gate.brokers.tls_handshake import TlsClient
from resources.gate.record import ConnectionEnded, ConnectionReason

_SHOWN_MOST = 8  # characters of a password, of which a quotation may be cut


@dataclass(frozen=True, kw_only=True)
class RedisLogin:
    """The server and the user of a run."""

    host: str
    port: int
    username: str
    password: str = field(repr=False)
    tls: bool
    ca: str = ""  # the only authorities to trust; empty for the public ones

    @property
    def place(self) -> str:
        """Return the server for messages, which a run may read: not where it is."""
        return "the run cache"


def redis_login(grant: Grant) -> RedisLogin:
    """Return the login of a grant that has its secrets."""
    config: IssuedConfig = build(IssuedConfig, grant.config, "config")
    return RedisLogin(
        host=config.host,
        port=config.port,
        username=config.username,
        password=grant.secrets.get("password", ""),
        tls=config.tls,
        ca=config.ca,
    )


class RedisRefusal(ConnectionEnded):
    """A connection that cannot go on, and the error for the client; names no secret."""

    def __init__(self, reason: ConnectionReason, text: str, *, answer: str = "") -> None:
        super().__init__(reason, text)
        self.answer = f"-{answer or 'ERR ' + text}\r\n".encode()


class RedisBroker(Broker):
    """Serves the connections of one run cache."""

    def __init__(self, login: RedisLogin, share: Share) -> None:
        self._login = login
        self._tls: TlsClient | None = None
        if login.tls:
            # Takes 20 ms, in which the gate could not serve others.
            context = tls_context(Proof.NAME, login.ca)
            self._tls = TlsClient(context=context, host=login.host, share=share)

    async def serve(self, inside: RunConnection, connect: Connect) -> None:
        """Log in and relay."""
        async with contextlib.AsyncExitStack() as stack:
            try:
                with _refusals(self._login):
                    async with asyncio.timeout(SECONDS):
                        streams = await stack.enter_async_context(
                            self._streams(connect, inside.charge)
                        )
                        await _log_in(self._login, streams)
            except RedisRefusal as refusal:
                with contextlib.suppress(ConnectionResetError):
                    await inside.write(refusal.answer)
                    inside.write_eof()
                raise
            await relay(inside, *streams)

    @contextlib.asynccontextmanager
    async def _streams(self, connect: Connect, charge: Charge) -> AsyncIterator[Streams]:
        async with opened(await connect(), self._tls, charge) as streams:
            yield streams


async def _log_in(login: RedisLogin, streams: Streams) -> None:
    reader, writer = streams
    writer.write(_command("AUTH", login.username, login.password))
    await writer.drain()
    try:
        answer = await reader.readuntil(b"\r\n")
    except (EOFError, asyncio.LimitOverrunError):
        answer = b""
    if answer == b"+OK\r\n":
        return
    if not answer.startswith(b"-"):
        raise RedisRefusal(
            ConnectionReason.PROTOCOL, f"{login.place} does not speak the protocol of Redis"
        )
    text = " ".join(answer[1:].decode(errors="replace").split())[:500]
    if login.password and login.password[:_SHOWN_MOST] in text:
        text = "ERR it quotes the login"  # a server that does not know the command quotes it
    refused = f"{login.place} refused the login: {text}"
    raise RedisRefusal(ConnectionReason.LOGIN, refused, answer=text)


@contextlib.contextmanager
def _refusals(login: RedisLogin) -> Iterator[None]:
    """Raise what goes wrong as RedisRefusal; addresses are not named to the run."""
    try:
        yield
    except RedisRefusal:
        raise
    except ConnectionEnded as ended:
        is_refused = ended.reason is ConnectionReason.ADDRESS_REFUSED
        answer = (
            f"ERR {login.place} {'may not be connected to' if is_refused else 'cannot be reached'}"
        )
        raise RedisRefusal(ended.reason, str(ended), answer=answer) from None
    except ssl.SSLCertVerificationError as error:
        text = f"the certificate of {login.place} is not accepted: {error.verify_message}"
        raise RedisRefusal(ConnectionReason.CERTIFICATE, text) from None
    except OSError as error:  # also TimeoutError
        text = f"{login.place} cannot be reached: {cause(error)}"
        raise RedisRefusal(ConnectionReason.UNREACHABLE, text) from None


def _command(*words: str) -> bytes:
    """Return a command in RESP."""
    encoded = [word.encode() for word in words]
    parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded]
    return b"*%d\r\n%b" % (len(parts), b"".join(parts))
