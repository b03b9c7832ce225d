"""The process in which steps run, forked from a zygote (`isolane.zygote`).

Timing: late packages are imported before the first frame is read; it ends with its stream.
Model: see isolane.session; the stream comes from the worker.
Guarantee: needs nothing but the standard library and this package.
Failure: a package that cannot be imported ends it with exit code 3 and one line on stderr.
"""

import os
import platform
import sys
from collections.abc import Sequence
from typing import NoReturn

from isolane.channel import Channel
from isolane.descriptors import make_room
from isolane.discovery import DiscoveryError, NodeSource
from isolane.limits import RunLimits
from isolane.node import default_registry
from isolane.session import Session
from isolane.stream import Stream
from isolane.text import MESSAGE_MAX, storable

EXIT_PACKAGE = 3


def serve(
    channel: Channel,
    *,
    versions: dict[str, str],
    late: Sequence[NodeSource],
    limits: RunLimits | None = None,
) -> NoReturn:
    """Import what is late and serve the stream.

    A runner with limits serves one execution; one without is reused, and restores itself between executions.
    """
    try:
        _reseed()
        if limits is None:
            make_room()  # for what a reused one keeps
        session = Session(Stream(channel), default_registry, limits=limits)
        session.install()
        versions = _import_late(versions, late)
        # Until here descriptor 2 was reserved for the error of a package that cannot be imported.
        session.install_pipes()
        session.serve(versions, platform.python_version())
    finally:
        # An ordinary exit would wait for threads that steps have left.
        os._exit(1)


def _reseed() -> None:
    """Give numpy's global generator another state, or all forks would draw the same numbers; Python's own has one."""
    if (numpy_random := sys.modules.get("numpy.random")) is not None:
        numpy_random.seed()


def _import_late(versions: dict[str, str], late: Sequence[NodeSource]) -> dict[str, str]:
    try:
        for source in late:
            versions = versions | source.load()
    except DiscoveryError as error:
        line = storable(str(error), MESSAGE_MAX)
        os.write(2, f"isolane.runner: {line}\n".encode())
        os._exit(EXIT_PACKAGE)
    return versions
