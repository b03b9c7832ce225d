"""A way, its outcome, and the parts that ways share."""

import errno
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from tests.forbidden_targets import REACHED

# Of the run: `http`, `database` and `cache`, each with host, port and what else its ways need.
Facts = dict[str, Any]
Way = Callable[[Facts], str]  # returns what it has reached; raises NotReached or OSError

SECONDS = 2.0
_MOST = 65536


class NotReached(Exception):
    """An answer that is not the forbidden target's."""


def outcome(way: Way, facts: Facts) -> str:
    """Return `reached` and what, or `not reached` and why."""
    try:
        return f"reached {way(facts)}"[:300]
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, repr(error))
        return f"not reached: {name}"[:300]
    except (NotReached, ValueError, OverflowError) as error:  # also what Python itself refuses
        return f"not reached: {error}"[:300]


def was_reached(told: str) -> bool:
    """Say whether this outcome is a leak."""
    return not told.startswith("not reached")


def first_reached(attempts: Iterable[Callable[[], str]]) -> str:
    """Return what the first successful attempt has reached, or fail like the last one."""
    last: Exception = NotReached("there was nothing to try")
    for attempt in attempts:
        try:
            return attempt()
        except (OSError, NotReached) as error:
            last = error
    raise last


def connected(address: str, port: int) -> socket.socket:
    """Connect without asking for a name's address."""
    ((family, kind, protocol, _, target),) = socket.getaddrinfo(
        address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
    )
    sock = socket.socket(family, kind, protocol)
    try:
        sock.settimeout(SECONDS)
        sock.connect(target)
    except BaseException:
        sock.close()
        raise
    return sock


def to_declared(facts: Facts, resource: str) -> socket.socket:
    """Connect to a declared resource by its own name, as a driver does."""
    declared = facts[resource]
    return socket.create_connection((declared["host"], declared["port"]), timeout=SECONDS)


def greeted(sock: socket.socket, *, sent: bytes = b"GET / HTTP/1.0\r\n\r\n") -> str:
    """Send, and return the greeting of a forbidden target."""
    with sock:
        sock.sendall(sent)
        return judged(received(sock))


def received(sock: socket.socket) -> bytes:
    """Read until the other side has no more to say, or for some time nothing."""
    data = b""
    with suppress(TimeoutError):
        while len(data) < _MOST and (more := sock.recv(4096)):
            data += more
            if REACHED in data:
                break
    return data


def judged(data: bytes) -> str:
    """Return an answer that is a forbidden target's."""
    if REACHED in data:
        return repr(data[:80])
    raise NotReached(f"answered {data[:120]!r}")
