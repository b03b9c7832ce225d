"""The root file system of a sandbox: a small tmpfs, the view bound into it, an own /proc, and /tmp with a size.

Timing: about a millisecond.
Model: in the sandbox's first process, in its own user and mount namespaces.
Guarantee: afterwards no path leads to the machine's other files.
Failure: SetupError; the process ends, and its namespaces with it.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from isolane.sandbox.syscalls import (
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    SetupError,
    attach_tree,
    clone_tree,
    make_private,
    make_read_only,
    mount,
    pivot_here,
    protect_tree,
)
from isolane.sandbox.view import FILES, HOME, LINKS, View

_BASE = "/usr"  # covered while the root is built; all that is bound is opened before
_ROOT_OPTIONS = "size=1m,nr_inodes=4k,mode=755"
_INODES_PER_MB = 256
_NOT_MOUNTED = MS_NOSUID | MS_NODEV


class Tree(NamedTuple):
    """A detached copy of mounts, and the place where it goes."""

    path: str
    descriptor: int
    is_folder: bool


def open_trees(view: View, devices: Sequence[str]) -> list[Tree]:
    """Open all that will be bound, as the user who may still see it."""
    make_private()
    found = []
    for path in (*view.binds, *devices):
        is_device = path in devices
        if is_device and not os.path.exists(path):
            continue
        tree = clone_tree(path)
        protect_tree(tree, devices=is_device)
        found.append(Tree(path, tree, os.path.isdir(path)))
    return found


def build_root(view: View, trees: list[Tree], *, disk_mb: int | None) -> None:
    """Build the root from these trees, and enter it."""
    mount("tmpfs", _BASE, _NOT_MOUNTED, _ROOT_OPTIONS)
    os.chdir(_BASE)
    with _named("files of the root"):
        for path in view.folders:
            os.mkdir(path.lstrip("/"))
            if path == HOME:  # before what may be bound inside
                mount("tmpfs", path.lstrip("/"), _NOT_MOUNTED, _home_options(disk_mb))
        for path, text in FILES.items():
            _write(path, text)
        for path, target in (LINKS | view.links).items():
            os.symlink(target, path.lstrip("/"))
    for tree in trees:
        _attach(tree)
    for path in view.hidden:
        _cover(path)
    # While the machine's own is still visible: without it the kernel would refuse a new one.
    mount("proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    pivot_here()
    make_read_only("/")


def _home_options(disk_mb: int | None) -> str:
    if disk_mb is None:
        return "mode=700"
    return f"mode=700,size={disk_mb}m,nr_inodes={max(disk_mb * _INODES_PER_MB, 1024)}"


def _attach(tree: Tree) -> None:
    if not tree.is_folder:
        with _named(f"the place of {tree.path}"):
            os.mknod(tree.path.lstrip("/"))
    attach_tree(tree.descriptor, tree.path.lstrip("/"))
    os.close(tree.descriptor)


def _cover(path: str) -> None:
    """Cover a folder by an empty one, a file by nothing that can be read."""
    inside = path.lstrip("/")
    if not os.path.exists(inside):
        return
    if os.path.isdir(inside):
        mount("tmpfs", inside, _NOT_MOUNTED, "size=4k,nr_inodes=2,mode=000")
        return
    tree = clone_tree("dev/null")
    attach_tree(tree, inside)
    os.close(tree)


def _write(path: str, text: str) -> None:
    descriptor = os.open(path.lstrip("/"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _named(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SetupError("root", error.errno or 0, f"making {what}") from None
