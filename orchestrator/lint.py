"""The part of `make lint` that needs Django: missing migrations, system checks with production settings, OpenAPI.

Timing: once, for developers.
Model: sync, one process after the other.
Guarantee: idempotent; it writes nothing.
Failure: continue; all checks run, and the exit code is 1 if one failed.
"""

import os
import subprocess
import sys
from secrets import token_urlsafe

from cryptography.fernet import Fernet

from orchestrator.env import PROJECT_ROOT
from orchestrator.processes import CREDENTIALS

EXAMPLE = PROJECT_ROOT / "deploy" / "production.env.example"
CHECKS = (
    ("makemigrations", "--check", "--dry-run"),
    ("check", "--deploy", "--fail-level", "WARNING"),
    ("spectacular", "--validate", "--fail-on-warn", "--file", os.devnull),
)


def production_environment() -> dict[str, str]:
    """Return the environment that the example file describes, and nothing else.

    The files with credentials are replaced by values that are used nowhere else.
    """
    lines = [line for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if "=" in line]
    values = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    for name in CREDENTIALS:
        del values[f"{name}_FILE"]
    return {"PATH": os.environ.get("PATH", ""), **values, **_stand_ins()}


def _stand_ins() -> dict[str, str]:
    password = token_urlsafe(24)
    return {
        # Without the owner no command tries to connect to a server.
        "DATABASE_URL": f"postgresql://isolane_login:{password}@db.example.com/isolane",
        "DATABASE_WORKER_URL": f"postgresql://isolane_worker:{password}@db.example.com/isolane",
        "REDIS_URL": f"rediss://isolane_web:{password}@broker.example.com:6379/0",
        "ISOLANE_CACHE_URL": f"rediss://:{password}@cache.example.com:6379/0",
        "SECRET_KEY": token_urlsafe(50),
        "ENCRYPTION_KEYS": Fernet.generate_key().decode(),
    }


def main() -> int:
    """Run all checks; return 1 if one fails."""
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
