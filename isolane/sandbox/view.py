"""The part of the file system that a sandbox shows: Python, the packages, the system's libraries. All of it read-only.

Timing: once in a zygote, after its packages are imported.
Model: sync.
Guarantee: nothing is shown beside these paths; what is hidden is covered, also inside one of them.
Failure: a path that does not exist is left out; a view that cannot be made says why, and no sandbox is built.
"""

import contextlib
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any

import isolane
from isolane.sandbox.paths import is_within, led_outside, outermost, places_of

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
_ZERO = "/dev/zero"
DEVICES = ("/dev/null", _ZERO, "/dev/full", "/dev/random", "/dev/urandom")
LINKS = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
    "/dev/shm": HOME,  # noqa: S108 - counted with the rest of what it writes
}
HOST_NAME = "isolane"
FILES = {
    "/etc/passwd": f"runner:x:{INSIDE_ID}:{INSIDE_ID}::{HOME}:/bin/sh\n",
    "/etc/group": f"runner:x:{INSIDE_ID}:\n",
    "/etc/hosts": f"127.0.0.1 localhost {HOST_NAME}\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "/etc/resolv.conf": "nameserver 127.0.0.1\noptions timeout:5 attempts:2\n",  # the gate's forwarder
}


def devices(*, ram_is_counted: bool) -> tuple[str, ...]:
    """Return the devices that are shown; memory of /dev/zero can be shared, and only a cgroup counts all of it."""
    return DEVICES if ram_is_counted else tuple(path for path in DEVICES if path != _ZERO)


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """The paths that are bound from the machine, and links of the machine's own between them."""

    binds: tuple[str, ...] = ()
    links: dict[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()  # within a bind, and covered
    folders: tuple[str, ...] = ()  # that the root needs for all this, the outer ones first
    readable: tuple[str, ...] = ()  # all of it and the sandbox's own, each path once
    failure: str = ""  # that kept it from being made


def view_of(
    paths: Iterable[str], modules: Mapping[str, object], *, hidden: Iterable[str] = ()
) -> View:
    """Return the view for an interpreter with these import paths and imported modules."""
    try:
        return _made(paths, _dictionaries(modules), tuple(hidden))
    except Exception as error:  # noqa: BLE001 - modules may be anything; runners without a sandbox need no view
        return View(failure=f"the files for sandboxes were not found: {error!r}")


def _made(
    paths: Iterable[str], modules: Mapping[str, dict[str, Any]], hidden: tuple[str, ...]
) -> View:
    links = {path: os.readlink(path) for path in (*_SYSTEM, *_SETTINGS) if os.path.islink(path)}
    wanted = [path for path in (*_SYSTEM, *_SETTINGS) if path not in links]
    wanted += [sys.base_prefix, sys.prefix, _PACKAGE, *_import_paths(paths), *_places(modules)]
    wanted = [path for path in wanted if not is_within(path, links) and _is_showable(path, ())]
    binds = _with_targets(wanted, [*wanted, *_packages(modules)], links, hidden)
    return View(
        binds=binds,
        links=links,
        # Those that do not exist yet may come while the zygote lives.
        hidden=places_of(hidden, binds),
        folders=_folders(binds, links),
        readable=_readable(binds, links),
    )


def _with_targets(
    wanted: Iterable[str], used: Iterable[str], links: Iterable[str], hidden: Iterable[str]
) -> tuple[str, ...]:
    """Return the outermost paths, and where links on the used ones lead, unless that is hidden."""
    binds, secret = outermost(wanted), [os.path.realpath(path) for path in hidden]
    while True:
        led = (led_outside(path, (*binds, *links)) for path in used)
        found = {path for path in led if path and _is_showable(path, secret)}
        if not found:
            return binds
        binds = outermost((*binds, *found))


def _is_showable(path: str, secret: Iterable[str]) -> bool:
    return path != "/" and os.path.exists(path) and not is_within(os.path.realpath(path), secret)


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
    return [
        path
        for path in map(os.path.abspath, _texts(paths))
        if not (is_source and os.path.realpath(path) == root)
    ]


def _dictionaries(modules: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """Return what the modules hold, by the names under which they were imported.

    Some entries are no modules, and a lazy one would be imported if it were asked itself.
    """
    return {
        name: object.__getattribute__(module, "__dict__")
        for name, module in list(modules.items())
        if isinstance(module, ModuleType)
    }


def _places(modules: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return the folder of every imported package, and the file of every other module, at the top level."""
    top = {name: module for name, module in modules.items() if "." not in name}
    files = [module.get("__file__") for module in top.values() if "__path__" not in module]
    return [*_packages(top), *map(os.path.abspath, _texts(files))]


def _packages(modules: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return the folders of all packages."""
    found: list[str] = []
    for module in modules.values():
        with contextlib.suppress(Exception):  # some are computed, and by code of any kind
            found += map(os.path.abspath, _texts(module.get("__path__") or ()))
    return found


def _texts(values: Iterable[object]) -> list[str]:
    """Leave out what is no path as Python imports from."""
    return [value for value in values if isinstance(value, str)]
