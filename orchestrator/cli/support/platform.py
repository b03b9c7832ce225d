"""Command classes that need a platform; it is looked for when a command runs, so that --help needs none."""

import os
from typing import Any

import click
from django.conf import settings

from foundation.errors import Forbidden, Unavailable
from orchestrator import env
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.state import read_running
from orchestrator.processes import CLIENTS_KEY, OPERATOR, PROVISIONER, Process


def has_platform() -> bool:
    """Return True if the address of a platform's database is known."""
    return bool(settings.ENV.database_url)


def require_platform() -> None:
    """Raise Unavailable without a platform."""
    if not has_platform():
        read_running(
            EmbeddedPaths(env.home(os.environ)).state_file
        )  # raises if it belongs to another user
        raise Unavailable("No platform runs here: start one with 'make up', or set DATABASE_URL.")


class PlatformCommand(click.Command):
    """A command that needs a platform."""

    process: Process = OPERATOR  # the kind of process whose credentials it needs

    def invoke(self, ctx: click.Context) -> Any:
        """Require the platform after the arguments are parsed, then run."""
        require_platform()
        env.require(self.process)
        return super().invoke(ctx)


class OperatorCommand(PlatformCommand):
    """A command for operators of the platform; no API key has the permission."""

    def invoke(self, ctx: click.Context) -> Any:
        """Refuse to run while an API key is set, then run."""
        if os.environ.get(CLIENTS_KEY):
            raise Forbidden(
                f"'{ctx.command_path}' is for operators of the platform, but {CLIENTS_KEY} is set, and with a key"
                f" every command has that key's rights; 'unset {CLIENTS_KEY}' to act as an operator."
            )
        return super().invoke(ctx)


class OwnerCommand(OperatorCommand):
    """A command that changes schemas and roles, and needs the owner's login only."""

    process = PROVISIONER


class PlatformGroup(click.Group):
    """A group whose commands need a platform, unless they have another class."""

    command_class = PlatformCommand


class OperatorGroup(click.Group):
    """A group whose commands are for operators."""

    command_class = OperatorCommand
