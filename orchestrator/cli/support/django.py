"""Django for commands: set up when a command needs it, not on import."""

import getpass
import os
import sys

import django
from rich.console import Console

# A log or a pipe has no width; ids must not be cut there.
UNBOUNDED = 400
CONSOLE = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else UNBOUNDED)


def setup_django(*, quiet: bool = True) -> None:
    """Load settings, apps and the Celery application, without connecting to a server."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.settings")
    quiet = quiet and "ISOLANE_LOG_LEVEL" not in os.environ
    if quiet:
        os.environ["ISOLANE_LOG_LEVEL"] = "ERROR"
    try:
        django.setup()
    finally:
        if quiet:  # for this process only: child processes log as configured
            del os.environ["ISOLANE_LOG_LEVEL"]
    from orchestrator.celery import app  # noqa: PLC0415 - needs the settings

    app.set_default()


def actor() -> str:
    """Return the name of the terminal's user, for the audit trail."""
    return f"cli:{getpass.getuser()}"
