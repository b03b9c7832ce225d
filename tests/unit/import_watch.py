"""Imports every module of some packages and says which of them does I/O meanwhile: `import_watch.py ROOT PACKAGE…`.

Run in a process of its own, since a module is imported once and an audit hook stays. A read is charged to a module
only if that module's own body asked for it: what an installed package reads of its own is its affair.
"""

import importlib
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

NEVER = (
    "socket.", "subprocess.", "os.fork", "os.posix_spawn", "os.exec", "os.spawn", "os.system", "os.mkdir", "os.remove",
    "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "tempfile.", "shutil.", "_thread.start_new_thread",
)  # fmt: skip
PURE = {"socket.gethostname"}  # asks the kernel for a name, opens nothing
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CODE = (".py", ".pyc", ".so", ".pth")
METADATA = (".dist-info/", ".egg-info/")


class Watch:
    """Records everything that is opened and must not be, with the module at fault."""

    def __init__(self, packages: list[str]) -> None:
        self.faults: list[str] = []
        self._packages = frozenset(packages)
        self._at_work = ""

    def during(self, name: str, work: Callable[[], object]) -> None:
        """Listen while this is done."""
        self._at_work = name
        work()
        self._at_work = ""

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        """The audit hook."""
        # Looking at the stack is an event, too.
        if self._at_work and event.startswith(("open", *NEVER)) and event not in PURE:
            bodies = _bodies(sys._getframe(1))
            if event != "open" or self._is_forbidden(*args, bodies=bodies):
                at_fault = next(filter(self._is_ours, bodies), self._at_work)
                self.faults.append(f"{at_fault}: {event} {args[0] if args else ''}".strip())

    def _is_forbidden(self, path: Any, mode: Any, flags: Any, *, bodies: list[str]) -> bool:
        if _is_write(mode, flags):
            return True
        return bool(bodies) and self._is_ours(bodies[0]) and not _is_code(path)

    def _is_ours(self, module: str) -> bool:
        return module.partition(".")[0] in self._packages


def modules(root: Path, package: str) -> list[str]:
    """Every module of a package, without __main__, which is meant to run."""
    files = sorted((root / package).rglob("*.py"))
    names = [".".join(file.relative_to(root).with_suffix("").parts) for file in files]
    return [name.removesuffix(".__init__") for name in names if not name.endswith(".__main__")]


def _bodies(frame: FrameType | None) -> list[str]:
    """The modules that are being imported, the innermost first."""
    found = []
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            found.append(str(frame.f_globals.get("__name__")))
        frame = frame.f_back
    return found


def _is_write(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str):
        return bool(set(mode) & set("wax+"))
    return isinstance(flags, int) and bool(flags & WRITES)


def _is_code(path: Any) -> bool:
    name = os.fsdecode(path) if isinstance(path, str | bytes) else ""
    return name.endswith(CODE) or name in sys.path or any(part in name for part in METADATA)


def _tell_of_threads(watch: Watch) -> None:
    """Python 3.11 has no audit event for them."""
    start = threading.Thread.start

    def heard(thread: threading.Thread) -> None:
        watch.hear("_thread.start_new_thread", (thread.name,))
        start(thread)

    setattr(threading.Thread, "start", heard)  # noqa: B010 - a method is not assigned to, says mypy


def main(root: Path, packages: list[str]) -> None:
    """Print one line per fault, and how many modules were imported."""
    names = [name for package in packages for name in modules(root, package)]
    sys.path.insert(0, str(root))
    watch = Watch(packages)
    sys.addaudithook(watch.hear)
    _tell_of_threads(watch)
    if "DJANGO_SETTINGS_MODULE" in os.environ:  # models may be imported only after Django's set-up
        watch.during("django.setup", importlib.import_module("django").setup)
    for name in names:
        watch.during(name, partial(importlib.import_module, name))
    print(*watch.faults, f"{len(names)} modules", sep="\n")  # noqa: T201 - its output


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
