"""The guest's system: Debian with systemd, Python and a kernel, as a disk image.

Timing: about a minute, once for a work directory.
Model: sync; debootstrap and mke2fs as processes.
Guarantee: an image that exists is whole, since it gets its name last.
Failure: bubble; the log of debootstrap is named.
"""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from trials.cgroup_v2 import disk
from trials.output import Progress

RELEASE = "bookworm"
USER = "isolane"
PROJECT = "/srv/isolane"  # where the second disk is mounted
_PACKAGES = "systemd,systemd-sysv,dbus,udev,kmod,python3,libseccomp2,linux-image-cloud-amd64,initramfs-tools"
_UNIT = f"""[Unit]
Description=Run what the second disk asks for, and power off
[Service]
Type=oneshot
ExecStart=/bin/mount -o ro /dev/vdb {PROJECT}
ExecStart=/bin/sh {PROJECT}/run
ExecStopPost=/bin/systemctl poweroff --force
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """The files that a machine boots from."""

    image: Path
    kernel: Path
    initrd: Path


def build(folder: Path, mirror: str, progress: Progress) -> System:
    """Return the system of a work directory, made if it is not there yet."""
    system = System(
        image=folder / "system.img", kernel=folder / "vmlinuz", initrd=folder / "initrd.img"
    )
    if system.image.exists():
        progress(f"using the Debian in {folder}")
        return system
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    progress(f"installing Debian {RELEASE}: a minute or two")
    _install(root, mirror, folder / "debootstrap.log")
    _configure(root)
    for name in (system.kernel.name, system.initrd.name):
        (found,) = (root / "boot").glob(f"{name}-*")
        shutil.copy(found, folder / name)
    disk.make(root, system.image)
    shutil.rmtree(root)
    return system


def _install(root: Path, mirror: str, log: Path) -> None:
    command = [
        "debootstrap",
        "--variant=minbase",
        f"--include={_PACKAGES}",
        RELEASE,
        str(root),
        mirror,
    ]
    with log.open("wb") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)  # noqa: S603
    if done.returncode != 0:
        raise RuntimeError(f"debootstrap failed, see {log}")


def _configure(root: Path) -> None:
    (root / PROJECT.lstrip("/")).mkdir()
    (root / "etc/systemd/system/isolane-trial.service").write_text(_UNIT, encoding="utf-8")
    (root / "etc/fstab").write_text("/dev/vda / ext4 defaults 0 0\n", encoding="utf-8")
    useradd = ["chroot", str(root), "useradd", "--create-home", "--uid", "1000", USER]
    subprocess.run(useradd, check=True)  # noqa: S603
