"""Ordinary work of steps, all of which must go on behind the walls."""

import asyncio
import concurrent.futures
import importlib.util
import mmap
import multiprocessing
import os
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from tests.integration.isolane.sandbox.calls import outcome


def threads() -> None:
    done = threading.Event()
    threading.Thread(target=done.set).start()
    assert done.wait(10)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(abs, range(-9, 0))) == 45


def programs() -> None:
    assert subprocess.check_output(["/bin/sh", "-c", "echo out | cat"]) == b"out\n"
    assert subprocess.check_output([sys.executable, "-Sc", "print(1)"]) == b"1\n"


def processes() -> None:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]


def loopback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            client.sendall(b"x")
            assert server.accept()[0].recv(1) == b"x"


def ipv6() -> None:
    socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close()


def names() -> None:
    """Look a name up: glibc asks netlink for the machine's addresses, and does without."""
    assert socket.getaddrinfo("localhost", 80)
    assert socket.gethostbyname(socket.gethostname()) == "127.0.0.1"


def unix_sockets() -> None:
    ours, theirs = socket.socketpair()
    ours.sendall(b"x")
    assert theirs.recv(1) == b"x"


def event_loop() -> None:
    async def main() -> None:
        child = await asyncio.create_subprocess_exec("/bin/cat", stdin=-1, stdout=-1)
        assert (await child.communicate(b"x"))[0] == b"x"
        assert await asyncio.to_thread(abs, -1) == 1
        async with await asyncio.start_server(
            lambda _, writer: writer.close(), "127.0.0.1"
        ) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            assert await reader.read() == b""
            writer.close()

    asyncio.run(main())


def tls() -> None:
    assert ssl.create_default_context().verify_mode == ssl.CERT_REQUIRED


def database() -> None:
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder, "data"))
        connection.execute("create table t (x)")
        connection.commit()
        connection.close()


def drivers() -> None:
    import psycopg

    assert psycopg.pq.version()


def files() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.mkfifo(Path(folder, "fifo"))
        Path(folder, "one").write_text("x")
        Path(folder, "one").rename(Path(folder, "two"))
        Path(folder, "three").symlink_to("two")
        Path(folder, "three").chmod(0o600)
        assert Path(folder, "three").read_text() == "x"


def memory() -> None:
    with mmap.mmap(-1, 4096) as page:
        page[0] = 1
    os.close(os.memfd_create("x"))


def signals() -> None:
    caught = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: caught.set())
    os.kill(os.getpid(), signal.SIGUSR1)
    assert caught.wait(10)


def numbers() -> None:
    """Use numpy, which starts threads; where it is not installed there is nothing to see."""
    if importlib.util.find_spec("numpy"):
        import numpy  # type: ignore[import-not-found,unused-ignore]

        assert (numpy.ones((200, 200)) @ numpy.ones((200, 200))).sum() == 200**3


WORK = (
    threads, programs, processes, loopback, ipv6, names, unix_sockets, event_loop, tls, database, drivers, files,
    memory, signals, numbers,
)  # fmt: skip


def failures() -> dict[str, str]:
    """Return what does not work, with its error."""
    outcomes = {work.__name__: outcome(work) for work in WORK}
    return {name: found for name, found in outcomes.items() if found != "ok"}
