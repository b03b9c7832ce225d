"""Serving an ASGI application with limits.

Timing: a long-running process of its own.
Model: async, one event loop; the application brings its threads.
Guarantee: best-effort beyond the limits: a refused or dropped request is for the caller to repeat.
Failure: an address in use ends the process with one line; a failed sweep is logged, and the next one follows.
"""

import asyncio
import gc
import logging
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import uvicorn

from foundation.errors import Conflict
from foundation.logs import limit_lines
from orchestrator.descriptors import raise_descriptors
from orchestrator.web.callers import Callers
from orchestrator.web.limits import WebLimits
from orchestrator.web.protocol import LimitedProtocol, Refusal
from orchestrator.web.traffic import Traffic

SWEEP_SECONDS = 0.5
BACKLOG = 2_048  # connections that the kernel keeps until they are accepted
# Less than the supervisor's wait before it kills.
STOP_SECONDS = 8
SWITCH_SECONDS = 0.0001
logger = logging.getLogger(__name__)


class WebServer(uvicorn.Server):
    """uvicorn with one sweep for all connections."""

    def __init__(
        self,
        application: Any,
        limits: WebLimits,
        *,
        session_cookie: str,
        refusal: Refusal = lambda _: None,
        sweep_seconds: float = SWEEP_SECONDS,
    ) -> None:
        self.traffic = Traffic(limits, time.monotonic)
        self._sweep_seconds = sweep_seconds
        protocol: Any = partial(
            LimitedProtocol,
            traffic=self.traffic,
            callers=Callers(),
            refusal=refusal,
            session_cookie=session_cookie.encode(),
        )
        super().__init__(
            uvicorn.Config(
                application,
                loop="asyncio",
                http=protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                # The application finds out the caller's address, by the proxies that it trusts.
                proxy_headers=False,
                server_header=False,
                backlog=limits.accepted,
                h11_max_incomplete_event_size=limits.header_bytes,
                timeout_graceful_shutdown=STOP_SECONDS,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and start the sweep."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)  # uvicorn set it to the number accepted at once
        self._sweep(asyncio.get_running_loop())

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            self.traffic.sweep()
        except Exception:
            logger.exception("a sweep of the connections failed", extra={"event": "SWEEP_FAILED"})
        loop.call_later(self._sweep_seconds, self._sweep, loop)


def serve(
    application: Any,
    *,
    address: str,
    port: int,
    on_listening: Callable[[], object],
    session_cookie: str,
    refusal: Refusal,
    at_work: int,
    body_bytes: int,
    connections_per_address: int,
) -> None:
    """Serve until stopped."""
    limit_lines()
    limits = WebLimits.for_descriptors(
        raise_descriptors(),
        at_work=at_work,
        at_work_per_caller=max(1, at_work // 5),
        body_bytes=body_bytes,
        connections_per_address=connections_per_address,
    )
    listening = listen(address, port)
    on_listening()
    _give_turns_to_the_event_loop()
    server = WebServer(application, limits, session_cookie=session_cookie, refusal=refusal)
    server.run(sockets=[listening])


def _give_turns_to_the_event_loop() -> None:
    """Let the event loop get Python's lock quickly: it waits for it after each system call while a thread computes."""
    sys.setswitchinterval(SWITCH_SECONDS)
    # Loaded modules stay: the collector need not look at them again.
    gc.collect()
    gc.freeze()


def listen(address: str, port: int) -> socket.socket:
    """Return the listening socket."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # With the protocol named, asyncio sets TCP_NODELAY; without it each answer would take 40 ms more.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise Conflict(f"Web cannot listen on {address}:{port}: {error.strerror}.") from None
    return listening
