"""Commands that need a platform: whether there is one is asked when they run, so that their --help needs none."""

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
    """Whether this terminal knows where a platform's database is."""
    return bool(settings.ENV.database_url)


def require_platform() -> None:
    """Refuse to go on without one."""
    if not has_platform():
        read_running(EmbeddedPaths(env.home(os.environ)).state_file)  # says so if it is not ours
        raise Unavailable("No platform runs here: start one with 'make up', or set DATABASE_URL.")


class PlatformCommand(click.Command):
    """A command that needs a platform."""

    process: Process = OPERATOR  # whose credentials it needs

    def invoke(self, ctx: click.Context) -> Any:
        """Ask for it after the arguments are read."""
        require_platform()
        env.require(self.process)
        return super().invoke(ctx)


class OperatorCommand(PlatformCommand):
    """A command for operators of the platform, which no API key has the right to."""

    def invoke(self, ctx: click.Context) -> Any:
        """Refuse who acts as an API key's owner."""
        if os.environ.get(CLIENTS_KEY):
            raise Forbidden(
                f"'{ctx.command_path}' is for operators of the platform, but {CLIENTS_KEY} is set, and with a key"
                f" every command has that key's rights; 'unset {CLIENTS_KEY}' to act as an operator."
            )
        return super().invoke(ctx)


class OwnerCommand(OperatorCommand):
    """A command that works on schemas and roles, and needs no more than that takes."""

    process = PROVISIONER


class PlatformGroup(click.Group):
    """A group whose commands need a platform, unless they are made with another class."""

    command_class = PlatformCommand


class OperatorGroup(click.Group):
    """A group whose commands are for operators."""

    command_class = OperatorCommand
