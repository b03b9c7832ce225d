"""The process in which steps run: `python -m isolane.runner --fd N [--path DIR] [--package NAME] [--tasks NAME]`.

Timing: packages are imported before the first frame is read; it ends with its stream.
Model: see isolane.session; the stream is a socket inherited from the worker.
Guarantee: needs nothing but the standard library and this package; runs without capabilities, also as root.
Failure: a package or entry point that cannot be imported ends it with exit code 3 and one line on stderr.
"""

import argparse
import os
import platform
import socket
import sys
from typing import NoReturn

from isolane.descendants import adopt_orphans
from isolane.discovery import DiscoveryError, discover
from isolane.node import default_registry
from isolane.privileges import drop_capabilities
from isolane.session import Session
from isolane.stream import Stream
from isolane.text import MESSAGE_MAX, storable

EXIT_PACKAGE = 3


def main() -> NoReturn:
    """Drop privileges, import the packages and serve the stream."""
    drop_capabilities()
    options = _options()
    sock = socket.socket(fileno=options.fd)
    sock.set_inheritable(False)
    adopt_orphans()
    session = Session(Stream(sock), default_registry)
    session.install()
    sys.path[:0] = options.path
    versions = _discover(options.package, options.tasks)
    # Until here descriptor 2 was reserved for the error of a package that cannot be imported.
    session.install_pipes()
    try:
        session.serve(versions, platform.python_version())
    finally:
        # An ordinary exit would wait for threads that steps have left.
        os._exit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="isolane.runner")
    parser.add_argument("--fd", type=int, required=True, help="inherited socket to the worker")
    parser.add_argument("--path", action="append", default=[], help="folder to import from")
    parser.add_argument("--package", action="append", default=[], help="package with nodes")
    parser.add_argument("--tasks", action="append", default=[], help="package with task functions")
    return parser.parse_args()


def _discover(packages: list[str], tasks: list[str]) -> dict[str, str]:
    try:
        return discover(default_registry, packages=packages, tasks=tasks)
    except DiscoveryError as error:
        line = storable(str(error), MESSAGE_MAX)
        os.write(2, f"isolane.runner: {line}\n".encode())
        os._exit(EXIT_PACKAGE)


if __name__ == "__main__":
    main()
