"""`python -m orchestrator.lock` writes `deploy/requirements.lock`: production's packages, each with its hash.

The versions are those of `constraints.txt`; packages for developers and for embedded servers are left out. It is a
second file because pip refuses hashes together with an editable install.

Timing: once, for developers, by `make lock`; downloads what pip does not have.
Model: sync, one process.
Guarantee: idempotent; the file is written when everything is known.
Failure: abort with pip's own message.
"""

import json
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.env import PROJECT_ROOT

LOCK = PROJECT_ROOT / "deploy" / "requirements.lock"
HEADER = """\
# What production installs, for {python} on {machine}; 'make lock' writes it. It names no index.
# pip install --require-hashes -r deploy/requirements.lock, then pip install --no-deps .
"""


def main() -> int:
    """Ask pip what it would install, and write the result."""
    command = [
        sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-",
        "--only-binary", ":all:", "--constraint", "constraints.txt", ".",
    ]  # fmt: skip
    asked = subprocess.run(  # noqa: S603 - our own command
        command, cwd=PROJECT_ROOT, stdout=subprocess.PIPE, check=False
    )
    if asked.returncode == 0:
        LOCK.write_text(lock_of(json.loads(asked.stdout)["install"]), encoding="utf-8")
    return asked.returncode


def lock_of(installs: Iterable[Mapping[str, Any]]) -> str:
    """Return the file for pip's report, without this project itself, which has no archive."""
    lines = sorted(
        f"{one['metadata']['name'].lower()}=={one['metadata']['version']} \\\n"
        f"    --hash=sha256:{one['download_info']['archive_info']['hashes']['sha256']}\n"
        for one in installs
        if "archive_info" in one["download_info"]
    )
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    machine = f"{platform.system()} {platform.machine()}"
    return HEADER.format(python=python, machine=machine) + "".join(lines)


if __name__ == "__main__":
    sys.exit(main())
