"""Nodes that try to reach what belongs to others, and report the result.

Search texts are reversed and compared in reverse: a search for a secret must not find itself.
"""
# ruff: noqa: T201 - prints are part of the test

import base64
import gc
import logging
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import redis
from redis.connection import Connection

from isolane import NodeContext, StepError, node

KEPT: dict[str, Any] = {}  # survives between the runs of one tenant in one runner


# --- the memory of an earlier run
@node("attack.keep")
def keep(ctx: NodeContext, *, resources: list[str]) -> int:
    """Keep the context, all handles, and all credentials."""
    KEPT.clear()
    KEPT["context"] = ctx
    for name in resources:
        handle = ctx.resource(name)
        ctx.check_resource(name)
        KEPT[name] = handle
    KEPT["login"] = {"conninfo": KEPT["own"].info.dsn, "password": KEPT["own"].info.password}
    connection = KEPT["scratch"]._connection
    names = ("host", "port", "username", "password")
    KEPT["user"] = {name: getattr(connection, name) for name in names}
    return os.getpid()


@node("attack.use_kept")
def use_kept(ctx: NodeContext) -> dict[str, Any]:
    """Try to use all that was kept."""
    uses = {
        "own": lambda: KEPT["own"].execute("SELECT 1"),
        "shop": lambda: KEPT["shop"].execute("SELECT 1"),
        "scratch": lambda: KEPT["scratch"].get("k"),
        "web": lambda: KEPT["web"].get("/again"),
        "context": lambda: KEPT["context"].resource("shop"),
        "declared": lambda: ctx.resource("shop"),
        "login": lambda: psycopg.connect(**KEPT["login"], connect_timeout=2),
        "user": _log_in_to_cache,
    }
    return {"pid": os.getpid(), **{name: _outcome(use) for name, use in uses.items()}}


@node("attack.open")
def open_all(ctx: NodeContext, *, resources: list[str]) -> dict[str, Any]:
    """Use resources as a well-behaved step does; return the passwords of the run, reversed."""
    handles = {name: ctx.resource(name) for name in resources}
    for name in resources:
        ctx.check_resource(name)
    made = (handles["own"].info.password, handles["scratch"]._connection.password)
    return {"pid": os.getpid(), "made": [password[::-1] for password in made]}


@node("attack.break_with")
def break_with(ctx: NodeContext, *, resources: list[str]) -> None:
    """Fail while using resources, with their secrets in exceptions and frames."""
    handles = {name: ctx.resource(name) for name in resources}
    try:
        handles["shop"].execute("SELECT %s::int", [handles["own"].info.password])
    except psycopg.Error as error:
        raise ValueError(_secrets(ctx, resources)) from error


@node("attack.search")
def search(ctx: NodeContext, *, backwards: list[str]) -> dict[str, Any]:
    """Search for texts in all objects of the process, and in its memory."""
    wanted = [needle.encode() for needle in backwards]
    inside = [[type(holder).__name__ for holder in _holders(needle)] for needle in wanted]
    return {"pid": os.getpid(), "objects": inside, "memory": _in_memory(wanted)}


@node("attack.search_places")
def search_places(ctx: NodeContext, *, resources: list[str]) -> dict[str, Any]:
    """Search for the run's own secrets in files, environment and arguments, where others could read them."""
    for name in resources:
        ctx.check_resource(name)
    own = Path("/proc/self")
    files = [*_own_files(Path.home()), *(path for path in (own / "fd").iterdir() if path.is_file())]
    places = {str(path): path.read_bytes() for path in [own / "environ", own / "cmdline", *files]}
    secrets = [secret.encode() for secret in _secrets(ctx, resources)]
    found = [place for place, text in places.items() for secret in secrets if secret in text]
    return {
        "home": str(Path.home()),
        "searched_for": len(secrets),
        "looked_at": list(places),
        "found": found,
    }


def _own_files(folder: Path) -> list[Path]:
    """Return the files of the run itself: a sandbox may show read-only folders of the machine below its home."""
    device = folder.stat().st_dev
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if path.stat().st_dev == device]


def _holders(backwards: bytes) -> list[Any]:
    gc.unfreeze()  # else objects that the runner has frozen would not be listed
    found = []
    for holder in gc.get_objects():
        for inner in gc.get_referents(holder):
            data = inner.encode("utf-8", "replace") if isinstance(inner, str) else inner
            if isinstance(data, bytes | bytearray) and backwards in bytes(data)[::-1]:
                found.append(holder)
    return found


def _in_memory(wanted: list[bytes]) -> list[int]:
    """Count each text in writable pages, freed or not."""
    counts = [0] * len(wanted)
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, rights = line.split()[:2]
            if not rights.startswith("rw"):
                continue
            start, end = (int(number, 16) for number in span.split("-"))
            try:
                memory.seek(start)
                backwards = memory.read(end - start)[::-1]
            except (OSError, ValueError, OverflowError):
                continue
            counts = [
                count + backwards.count(needle)
                for count, needle in zip(counts, wanted, strict=True)
            ]
    return counts


# --- the cache of another run
@node("attack.guard_key")
def guard_key(ctx: NodeContext) -> Any:
    """Set a value, wait until the others have tried, and read it."""
    cache = ctx.resource("scratch")
    cache.set("k", "mine")
    while not cache.exists("tried"):
        time.sleep(0.02)
    return cache.get("k")


@node("attack.cache")
def attack_cache(ctx: NodeContext, *, prefix: str) -> dict[str, str]:
    """Request everything that is not the run's own, over the run's own connection."""
    connection = ctx.resource("scratch")._connection
    user = prefix.removesuffix(":")
    asked = [
        ("GET", f"{prefix}k"), ("DEL", f"{prefix}k"), ("SET", f"{prefix}k", "theirs"), ("EXISTS", f"{prefix}k"),
        ("EXPIRE", f"{prefix}k", "1"), ("INCRBY", f"{prefix}k", "1"), ("SCAN", "0"), ("KEYS", "*"), ("RANDOMKEY",),
        ("DBSIZE",), ("FLUSHALL",), ("FLUSHDB",), ("EVAL", "return 1", "0"), ("SUBSCRIBE", "c"), ("PUBLISH", "c", "x"),
        ("CLIENT", "LIST"), ("CLIENT", "KILL", "USER", user), ("ACL", "LIST"), ("ACL", "DELUSER", user),
        ("CONFIG", "GET", "*"), ("SELECT", "1"), ("MONITOR",), ("INFO",), ("DUMP", f"{prefix}k"),
        ("AUTH", "default", ""),  # last: the client closes the connection after it
    ]  # fmt: skip
    return {" ".join(command): _answer(connection, command) for command in asked}


def _answer(connection: Any, command: tuple[str, ...]) -> str:
    try:
        connection.send_command(*command)
        return f"answered {connection.read_response()!r}"
    except redis.RedisError as error:
        return type(error).__name__


# --- resources that the run has not declared
@node("attack.resource")
def resource(ctx: NodeContext, *, name: str) -> None:
    """Request a resource."""
    ctx.resource(name)


# --- secrets in all outputs of a step
@node("attack.tell")
def tell(ctx: NodeContext, *, resources: list[str], how: str) -> Any:
    """Write the run's secrets in every form to every output, then once more as `how` says."""
    secrets = [form for secret in _secrets(ctx, resources) for form in _forms(secret)]
    for form in secrets:
        print(f"print {form}")
        logging.getLogger("library").warning("log %s", form)
        ctx.log(f"line {form}")
        ctx.progress(0.5, f"progress {form}")
        os.write(1, f"descriptor {form}\n".encode())
        subprocess.run(["echo", form], check=True)
        ctx.on_close(_named_like(form))
    match how:
        case "step error":
            raise StepError("UNKNOWN_ERROR", f"refused: {secrets}")
        case "error":
            raise ValueError(secrets)
        case "variable":
            ctx.memory["found"] = {"deep": [secrets[-1]]}
        case "cost":
            ctx.cost(secrets[0], 1)
        case "question":
            ctx.ask(f"is it {secrets[0]}?", 60)
        case "output":
            return {"deep": [{"found": secrets[0]}]}
        case "base64":
            return {base64.b64encode(f"user:{secrets[0]}".encode()).decode(): 1}
    return None


def _secrets(ctx: NodeContext, resources: list[str]) -> list[str]:
    return [_SECRET_OF[name](ctx.resource(name)) for name in resources]


def _token(client: Any) -> str:
    request = next(client.auth.auth_flow(client.build_request("GET", "/")))
    return str(request.headers["authorization"]).removeprefix("Bearer ")


_SECRET_OF: dict[str, Callable[[Any], str]] = {
    "shop": lambda handle: handle.info.password,
    "own": lambda handle: handle.info.password,
    "scratch": lambda handle: handle._connection.password,
    "web": _token,
}


def _forms(secret: str) -> list[str]:
    encoded = base64.b64encode(secret.encode()).decode()
    inside = base64.b64encode(f"user:{secret}".encode()).decode()
    safe = base64.urlsafe_b64encode(secret.encode()).decode()
    return [secret, encoded, inside, safe, quote(secret, safe="")]


def _named_like(text: str) -> Any:
    def refuse() -> None:
        raise ValueError(text)

    return refuse


def _outcome(use: Any) -> str:
    try:
        return f"worked: {use()!r}"
    except Exception as error:  # noqa: BLE001 - any outcome is reported
        return f"{type(error).__name__}: {error}"


def _log_in_to_cache() -> None:
    made: Any = Connection  # redis-py does not type it
    connection = made(**KEPT["user"], protocol=2, driver_info=None)
    try:
        connection.connect()
    finally:
        connection.disconnect()
