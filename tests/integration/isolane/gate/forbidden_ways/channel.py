"""Ways by the runtime's own descriptors: frames that the worker may take for the runtime's, and what it has inherited.

Frames may end the run.
"""

import fcntl
import json
import os
import select
import stat
from base64 import b64decode
from pathlib import Path

from isolane.protocol import HEADER, VERSION
from tests.integration.isolane.gate.forbidden_ways.way import (
    SECONDS,
    Facts,
    NotReached,
    Way,
    judged,
)

_OUTPUT = 2  # the last descriptor of a program's ordinary ones
_KINDS = range(1, 32)
_TARGET = {"host": "169.254.169.254", "port": 80, "name": "undeclared.example", "connection": 9}
_MOST = 65536


def _pipes(mode: int) -> list[int]:
    """Return the pipes and sockets of this process that can be written, or read."""
    found = []
    for number in (int(path.name) for path in Path("/proc/self/fd").iterdir()):
        try:
            kind, flags = os.fstat(number).st_mode, fcntl.fcntl(number, fcntl.F_GETFL)
        except OSError:  # that of the listing
            continue
        of_mode = flags & os.O_ACCMODE in (mode, os.O_RDWR)
        if number > _OUTPUT and of_mode and (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
            found.append(number)
    return found


def _write_everywhere(frames: list[bytes]) -> str:
    """Write frames to all descriptors, and look whether an answer comes by one."""
    for number in _pipes(os.O_WRONLY):
        for frame in frames:
            if select.select([], [number], [], 0)[1]:
                os.write(number, frame)
    readable, _, _ = select.select(_pipes(os.O_RDONLY), [], [], SECONDS)
    return judged(b"".join(os.read(number, _MOST) for number in readable))


def _every_kind(facts: Facts) -> str:
    """Ask for the forbidden target by a frame of each number that there may be."""
    body = json.dumps(_TARGET).encode()
    return _write_everywhere([HEADER.pack(VERSION, kind, len(body)) + body for kind in _KINDS])


def _given_frames(facts: Facts) -> str:
    """Write the frames that the test has made of the real protocol, in Base64."""
    frames = [b64decode(text) for text in facts.get("frames", [])]
    if not frames:
        raise NotReached("there are none")
    return _write_everywhere(frames)


def _inherited_sockets(facts: Facts) -> str:
    """Look for a socket that the run has not opened."""
    links = [str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    found = [link for link in links if link.startswith("socket:")]
    if not found:
        raise NotReached("no sockets")
    return f"{found}"


CHANNEL: dict[str, Way] = {
    "frames_of_every_kind": _every_kind,
    "given_frames": _given_frames,
    "inherited_sockets": _inherited_sockets,
}
