"""The part of the file system that a sandbox shows: Python, the packages, the system's libraries. All of it read-only.

Timing: once in a zygote, after its packages are imported.
Model: sync.
Guarantee: nothing is shown beside these paths; what is hidden is covered, also inside one of them.
Failure: a path that does not exist is left out.
"""

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import ModuleType

import isolane

INSIDE_ID = 1000  # of the only user and group
HOME = "/tmp"  # noqa: S108 - a file system of the sandbox's own
_PACKAGE = os.path.dirname(os.path.realpath(isolane.__file__))
_SITE_PACKAGES = ("site-packages", "dist-packages")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = (
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/timezone",
    "/etc/alternatives", "/etc/mime.types", "/etc/protocols", "/etc/services",
    "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/ca-trust",
)  # fmt: skip
_OWN = ("/proc", "/dev", "/etc")  # of the sandbox itself, beside its home
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
LINKS = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
    "/dev/shm": HOME,  # noqa: S108 - counted with the rest of what it writes
}
FILES = {
    "/etc/passwd": f"runner:x:{INSIDE_ID}:{INSIDE_ID}::{HOME}:/bin/sh\n",
    "/etc/group": f"runner:x:{INSIDE_ID}:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "/etc/resolv.conf": "",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """The paths that are bound from the machine, and links of the machine's own between them."""

    binds: tuple[str, ...]
    links: dict[str, str]
    hidden: tuple[str, ...]  # within a bind, and covered
    folders: tuple[str, ...]  # that the root needs for all this, the outer ones first
    readable: tuple[str, ...]  # all of it and the sandbox's own, without what is inside another one


def view_of(
    paths: Iterable[str], modules: Iterable[ModuleType], *, hidden: Iterable[str] = ()
) -> View:
    """Return the view for an interpreter with these import paths and imported modules."""
    links = {path: os.readlink(path) for path in (*_SYSTEM, *_SETTINGS) if os.path.islink(path)}
    wanted = [path for path in (*_SYSTEM, *_SETTINGS) if path not in links]
    wanted += [sys.base_prefix, sys.prefix, _PACKAGE, *_import_paths(paths), *_places(modules)]
    binds = outermost(path for path in wanted if path != "/" and os.path.exists(path))
    # Those that do not exist yet may come while the zygote lives.
    covered = tuple(path for path in hidden if is_within(path, binds))
    return View(
        binds=binds,
        links=links,
        hidden=covered,
        folders=_folders(binds, links),
        readable=_readable(binds, links),
    )


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths without those that are inside another one. Pure."""
    found: list[str] = []
    for path in sorted(map(os.path.normpath, paths)):
        if not is_within(path, found):
            found.append(path)
    return tuple(found)


def is_within(path: str, folders: Iterable[str]) -> bool:
    """Say whether a path is one of these folders or inside one. Pure."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _folders(binds: Iterable[str], links: Iterable[str]) -> tuple[str, ...]:
    places = [PurePosixPath(path) for path in (*binds, *links, *LINKS, *FILES, *DEVICES)]
    found = {*_OWN, HOME, *(path for path in binds if os.path.isdir(path))}
    found.update(str(folder) for place in places for folder in place.parents)
    return tuple(sorted(found - {"/"}))


def _readable(binds: Iterable[str], links: dict[str, str]) -> tuple[str, ...]:
    """Return a link only if it leads out of what is bound: else its target is shown already."""
    folders = (*binds, *_OWN)
    targets = {path: os.path.join(os.path.dirname(path), target) for path, target in links.items()}
    outside = [
        path for path, target in targets.items() if not is_within(os.path.normpath(target), folders)
    ]
    return outermost((*folders, *outside))


def _import_paths(paths: Iterable[str]) -> list[str]:
    """Leave out the folder of our own source, where the platform's data may be; its package is shown alone."""
    root, _, _ = _PACKAGE.rpartition("/")
    is_source = os.path.basename(root) not in _SITE_PACKAGES
    return [path for path in map(os.path.abspath, paths) if not (is_source and path == root)]


def _places(modules: Iterable[ModuleType]) -> list[str]:
    """Return the folder of every imported package, and the file of every other module, at the top level."""
    found: list[str] = []
    for module in modules:
        if "." in module.__name__:
            continue
        if (folders := getattr(module, "__path__", None)) is not None:
            found += [os.path.abspath(folder) for folder in folders]
        elif file := getattr(module, "__file__", None):
            found.append(os.path.abspath(file))
    return found
