"""Paths in a sandbox: a link that is shown leads nowhere if its target is not, and one file can have several paths.

Timing: some system calls for each path.
Model: sync.
Guarantee: what is hidden is found behind links, whatever path shows it.
Failure: bubble; a path that does not exist is its own target.
"""

import os
from collections.abc import Iterable, Iterator

_LINKS_MAX = 40  # that the kernel itself follows in one path


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


def places_of(hidden: Iterable[str], binds: Iterable[str]) -> tuple[str, ...]:
    """Return every place where one of the hidden paths would be seen, as the binds spell it."""
    real = [os.path.realpath(path) for path in hidden]
    return tuple(
        bind + path.removeprefix(source)
        for bind in binds
        for source in [os.path.realpath(bind)]
        for path in real
        if is_within(path, [source])
    )


def led_outside(path: str, binds: Iterable[str]) -> str | None:
    """Return where the links on a path inside a bind lead, if that is outside of all binds; else None."""
    shown = list(binds)
    for followed in range(_LINKS_MAX):
        around = next((bind for bind in shown if is_within(path, [bind])), None)
        if around is None:
            return path if followed else None
        link = next((each for each in _below(path, around) if os.path.islink(each)), None)
        if link is None:
            return None
        target = os.path.join(os.path.dirname(link), os.readlink(link))
        path = os.path.normpath(target + path.removeprefix(link))
    return None


def _below(path: str, folder: str) -> Iterator[str]:
    """Yield the folders on the way from a folder to a path inside it, and the path."""
    way = folder
    for name in filter(None, path.removeprefix(folder).split("/")):
        way = f"{way}/{name}"
        yield way
