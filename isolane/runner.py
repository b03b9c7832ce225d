"""The process in which steps run: `python -m isolane.runner --fd N [--path DIR] [--package NAME]`.

Timing: packages are imported before the first frame is read; it ends with its stream.
Model: see isolane.session; the stream is a socket inherited from the worker.
Guarantee: needs nothing but the standard library and this package.
Failure: a package that cannot be imported ends it with exit code 3 and one line on stderr.
"""

import argparse
import importlib
import importlib.metadata
import os
import platform
import socket
import sys
from pathlib import Path
from typing import NoReturn

from isolane.node import default_registry
from isolane.processes import adopt_orphans
from isolane.session import Session
from isolane.stream import Stream
from isolane.text import MESSAGE_MAX, storable

EXIT_PACKAGE = 3


def main() -> NoReturn:
    """Import the packages and serve the stream."""
    options = _options()
    sock = socket.socket(fileno=options.fd)
    sock.set_inheritable(False)
    adopt_orphans()
    session = Session(Stream(sock), default_registry)
    session.install()
    sys.path[:0] = options.path
    names = ["isolane", *options.package]
    for name in ["isolane.nodes", *options.package]:
        _import(name)
    _silence()
    try:
        session.serve({name: _version(name) for name in names}, platform.python_version())
    finally:
        # A usual exit would wait for threads that steps have left.
        os._exit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="isolane.runner")
    parser.add_argument("--fd", type=int, required=True, help="inherited socket to the worker")
    parser.add_argument("--path", action="append", default=[], help="folder to import from")
    parser.add_argument("--package", action="append", default=[], help="package with nodes")
    return parser.parse_args()


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except BaseException as error:  # noqa: BLE001 - SystemExit, too, must name the package
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        line = storable(f"package {name} cannot be imported: {reason}", MESSAGE_MAX)
        os.write(2, f"isolane.runner: {line}\n".encode())
        os._exit(EXIT_PACKAGE)


def _silence() -> None:
    # Descriptor 2 was for the line above only; from here on C code may write to it as it likes.
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(sys.modules[package], "__version__", "unknown"))


if __name__ == "__main__":
    main()
