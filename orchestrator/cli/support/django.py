"""Django inside the command: set up when a command needs it, not when it is imported."""

import getpass
import os
import sys

import django
from rich.console import Console

# A log or a pipe has no width of its own; ids must not be cut there, whatever stands beside them.
UNBOUNDED = 400
CONSOLE = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else UNBOUNDED)


def setup_django(*, quiet: bool = True) -> None:
    """Load settings, apps and the Celery application; no server is asked for anything."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.settings")
    quiet = quiet and "ISOLANE_LOG_LEVEL" not in os.environ
    if quiet:
        os.environ["ISOLANE_LOG_LEVEL"] = "ERROR"
    try:
        django.setup()
    finally:
        if quiet:  # for this terminal: what it starts logs as it is configured
            del os.environ["ISOLANE_LOG_LEVEL"]
    from orchestrator.celery import app  # noqa: PLC0415 - needs the settings

    app.set_default()


def actor() -> str:
    """Who types the command, for the audit trail."""
    return f"cli:{getpass.getuser()}"
