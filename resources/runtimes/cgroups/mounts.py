"""Reading where the cgroups of a process are: its groups, and the file systems that show them. Pure."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

UNIFIED = ""  # v2 in the place of a controller


@dataclass(frozen=True, kw_only=True, slots=True)
class Mount:
    """One mounted hierarchy: the part of it below `root` is shown at `point`."""

    root: str
    point: str
    controllers: frozenset[str]

    def directory(self, group: str) -> Path | None:
        """Return the directory of a group; None if it is not shown here."""
        path = PurePosixPath(group)
        if ".." in path.parts or not path.is_relative_to(self.root):
            return None
        return Path(self.point) / path.relative_to(self.root)


def own_directories(cgroup: str, mountinfo: str) -> dict[str, Path]:
    """Return the directory of each controller's group, from the two files below /proc/self of these names."""
    found: dict[str, Path] = {}
    mounts = _mounts(mountinfo)
    for controller, group in _groups(cgroup).items():
        for mount in mounts:
            if controller in mount.controllers and (directory := mount.directory(group)):
                found.setdefault(controller, directory)
    return found


def _groups(cgroup: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in cgroup.splitlines():
        _, controllers, group = line.split(":", 2)
        found |= dict.fromkeys(controllers.split(","), group)
    return found


def _mounts(mountinfo: str) -> list[Mount]:
    found = []
    for line in mountinfo.splitlines():
        before, _, behind = line.partition(" - ")
        kind, _, options = behind.split(" ", 2)
        if kind in {"cgroup", "cgroup2"}:
            root, point = before.split(" ")[3:5]
            controllers = options.split(",") if kind == "cgroup" else [UNIFIED]
            found.append(Mount(root=root, point=point, controllers=frozenset(controllers)))
    return found
