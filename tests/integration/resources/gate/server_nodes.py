"""The nodes of steps that use servers: by their handles, and by name with drivers of their own."""

import contextlib
import http.client
import socket
import ssl
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from isolane import NodeContext, node

_SECONDS = 10
_WHO = "SELECT current_database() AS dbname, session_user::text AS user"


@node("servers.http_api")
def http_api(ctx: NodeContext, *, path: str = "/echo", follow: bool = False) -> dict[str, Any]:
    """Ask by the handle; without an answer, return what the client says."""
    import httpx

    try:
        response = ctx.resource("http_api").get(path, follow_redirects=follow)
    except httpx.ConnectError as error:
        return {"status": None, "told": str(error)}
    is_json = response.headers.get("content-type") == "application/json"
    told = response.json() if is_json else response.text
    return {"status": response.status_code, "told": told}


@node("servers.http_api_by_name")
def http_api_by_name(
    ctx: NodeContext, *, host: str, port: int, ca: str = "", token: str = "", family: int = 0
) -> dict[str, Any]:
    """Ask with a client of the standard library; by TLS if there is an authority."""
    places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    families = sorted({int(found[0]) for found in places})
    place = next(found[4] for found in places if family in (0, found[0]))
    sock = socket.create_connection((str(place[0]), port), timeout=_SECONDS)
    if ca:
        sock = ssl.create_default_context(cadata=ca).wrap_socket(sock, server_hostname=host)
    with contextlib.closing(http.client.HTTPConnection(host, port)) as connection:
        connection.sock = sock
        connection.request("GET", "/echo", headers={"Authorization": token} if token else {})
        response = connection.getresponse()
        return {"status": response.status, "told": response.read().decode(), "families": families}


@node("servers.model")
def model(ctx: NodeContext) -> str:
    """Ask a model by the handle."""
    return str(ctx.resource("model").chat([{"role": "user", "content": "Which protocol?"}]).text)


@node("servers.database")
def database(ctx: NodeContext) -> dict[str, Any]:
    """Query by the handle."""
    return dict(ctx.resource("database").execute(_WHO).fetchone())


@node("servers.database_by_name")
def database_by_name(ctx: NodeContext, *, options: dict[str, Any], ca: str = "") -> dict[str, Any]:
    """Query by a connection of the driver itself."""
    import psycopg
    from psycopg.rows import dict_row

    with (
        _file(ca) as name,
        psycopg.connect(
            **options, sslrootcert=name, connect_timeout=_SECONDS, row_factory=dict_row
        ) as connection,
    ):
        return dict(connection.execute(_WHO).fetchone() or {})


@node("servers.database_cancel")
def database_cancel(ctx: NodeContext) -> list[str]:
    """Cancel a statement of the handle; return its error, and that of the cancelling if there is one."""
    import psycopg

    connection, errors = ctx.resource("database"), list[str]()

    def cancel() -> None:
        try:
            connection.cancel_safe()
        except psycopg.Error as error:
            errors.append(str(error))

    timer = threading.Timer(0.2, cancel)
    timer.start()
    try:
        connection.execute("SELECT pg_sleep(20)")
    except psycopg.Error as error:
        errors.insert(0, type(error).__name__)
    timer.join()
    return errors


@node("servers.cache_in_a_row")
def cache_in_a_row(ctx: NodeContext, *, number: int) -> int:
    """Connect again and again, and close without a word, as this driver does."""
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    once = Retry(NoBackoff(), 0)
    how: dict[str, Any] = {"protocol": 2, "lib_name": None, "lib_version": None, "retry": once}
    for _ in range(number):
        with redis.Redis("run-cache", 6379, **how) as client:
            client.ping()
    return number


@node("servers.cache")
def cache(ctx: NodeContext) -> dict[str, Any]:
    """Keep a value by the handle."""
    handle = ctx.resource("cache")
    handle.set("key", ["value"])
    return {"value": handle.get("key"), "user": handle.check()["user"]}


@node("servers.cache_by_name")
def cache_by_name(
    ctx: NodeContext, *, options: dict[str, Any], key: str, ca: str = ""
) -> dict[str, Any]:
    """Keep a value with the driver itself."""
    import redis

    with _file(ca) as name:
        tls: dict[str, Any] = {"ssl": True, "ssl_ca_certs": name} if ca else {}
        with redis.Redis(**options, **tls, protocol=2, lib_name=None, lib_version=None) as client:
            client.set(key, "value")
            return {"value": str(client.get(key), "ascii"), "user": str(client.acl_whoami())}


@contextlib.contextmanager
def _file(text: str) -> Iterator[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(text)
        file.flush()
        yield file.name
