"""The checks of `make lint` that need Django: missing migrations, and deployment checks with production settings.

Timing: once, for developers. Model: sync, one process after the other. Guarantee: idempotent; it writes
nothing. Failure: continue; all checks run, and the exit code is 1 if one failed.
"""

import os
import subprocess
import sys

from orchestrator.env import PROJECT_ROOT

EXAMPLE = PROJECT_ROOT / "deploy" / "production.env.example"
CHECKS = (
    ("makemigrations", "--check", "--dry-run"),
    ("check", "--deploy", "--fail-level", "WARNING"),
    ("spectacular", "--validate", "--fail-on-warn", "--file", os.devnull),
)


def production_environment() -> dict[str, str]:
    """The environment that the example file describes, and nothing else that could decide."""
    lines = [line for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if "=" in line]
    values = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    # Without the owner no check has a reason to look for a server.
    del values["DATABASE_OWNER_URL"]
    return {"PATH": os.environ.get("PATH", ""), **values}


def main() -> int:
    """Run all; the exit code is 1 if one fails."""
    failed = False
    for check in CHECKS:
        command = [sys.executable, str(PROJECT_ROOT / "manage.py"), *check]
        result = subprocess.run(  # noqa: S603 - our own
            command, env=production_environment(), cwd=PROJECT_ROOT, check=False
        )
        failed = failed or result.returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
