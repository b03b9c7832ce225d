"""Checking what the trial needs of this machine, and naming the way to get it."""

import os
import shutil
import sys

GUEST_PYTHON = (3, 11)  # Debian 12's; the packages of the running interpreter are used in the guest
PACKAGES = {
    "debootstrap": "debootstrap",
    "qemu-system-x86_64": "qemu-system-x86",
    "mke2fs": "e2fsprogs",
    "git": "git",
}


def missing() -> list[str]:
    """Return what is missing, one sentence each."""
    found = []
    if os.geteuid() != 0:
        found.append("debootstrap needs root: run the trial as root")
    absent = [package for command, package in PACKAGES.items() if shutil.which(command) is None]
    if absent:
        found.append(f"commands are missing: apt-get install {' '.join(absent)}")
    if sys.version_info[:2] != GUEST_PYTHON:
        wanted = ".".join(map(str, GUEST_PYTHON))
        found.append(f"run it with Python {wanted}: its packages are used in the guest")
    return found
