"""The root command: its groups, and the rendering of errors."""

import sys
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn

import click
import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.db import DataError, InterfaceError, OperationalError

from foundation.errors import IsolaneError, Unavailable
from orchestrator.cli.support.django import setup_django
from orchestrator.embedded.errors import EmbeddedError

EXIT_FAILED = 1
EXIT_UNUSABLE = 2  # wrong configuration, or a server that does not answer
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True)
class CommandEntry:
    """The place of a command; its module is imported when the command is called."""

    at: str
    help: str
    django: bool = True
    quiet: bool = True  # log errors only, unless ISOLANE_LOG_LEVEL is set


COMMANDS = {
    "up": CommandEntry(at="stack:up", help="Run the whole platform until Ctrl-C.", django=False),
    "demo": CommandEntry(
        at="demo:demo", help="Run the whole platform once, with three tenants.", django=False
    ),
    "status": CommandEntry(at="stack:status", help="Show the running platform.", django=False),
    "down": CommandEntry(at="stack:down", help="Stop a platform started elsewhere.", django=False),
    "tenants": CommandEntry(
        at="tenants:tenants", help="Create, list, change, suspend, resume and delete tenants."
    ),
    "api-keys": CommandEntry(
        at="api_keys:api_keys", help="Create, list and revoke API keys of a tenant."
    ),
    "admins": CommandEntry(
        at="admins:admins", help="Create administrators and set their passwords."
    ),
    "run": CommandEntry(
        at="run:run", help="Run a blueprint from a file here, without any server.", django=False
    ),
    "nodes": CommandEntry(at="nodes:nodes", help="List and show the nodes that steps can use."),
    "blueprints": CommandEntry(
        at="blueprints:blueprints", help="Check, publish, list, show and compare blueprints."
    ),
    "executions": CommandEntry(
        at="executions:executions", help="Submit, replay, cancel, list and show runs."
    ),
    "explain": CommandEntry(
        at="explain:explain", help="Explain a run: its events in order, and its status."
    ),
    "approvals": CommandEntry(
        at="approvals:approvals", help="List, approve and reject questions of runs to people."
    ),
    "resources": CommandEntry(
        at="resources:resources", help="Define, test, list, show and delete resources of a tenant."
    ),
    "secrets": CommandEntry(
        at="secrets:secrets",
        help="Set, list and delete secrets of a tenant; rotate the encryption key.",
    ),
    "levels": CommandEntry(
        at="levels:levels", help="Show the isolation levels that this machine can offer, and why."
    ),
    "folders": CommandEntry(
        at="folders:folders",
        help="Remove folders that workers left on this machine.",
        django=False,
    ),
    "norp": CommandEntry(
        at="norp:norp", help="Run the NORP-006 compliance tests on the running platform."
    ),
    "web": CommandEntry(at="web:web", help="Serve the API, the admin and the pages.", django=False),
    "migrate": CommandEntry(at="servers:migrate", help="Bring every schema up to date."),
    "provisioner": CommandEntry(
        at="servers:provisioner",
        help="Create, migrate and delete tenants' schemas until stopped.",
        quiet=False,
    ),
    "flower": CommandEntry(at="flower:flower", help="Serve Flower behind a login.", django=False),
    "keys": CommandEntry(at="keys:keys", help="Generate encryption keys.", django=False),
}


class LazyGroup(click.Group):
    """A group that imports a command when it is called, so that --help is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of COMMANDS."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Set up Django if the command needs it, and import the command."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        if entry.django:
            setup_django(quiet=entry.quiet)
        module, name = entry.at.split(":")
        command: click.Command = getattr(import_module(f"orchestrator.cli.commands.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="isolane")
def cli() -> None:
    """Isolane: run your customers' workflows, each run in a context of its own."""


def main() -> None:
    """Run the command; an expected error becomes one line and an exit code, never a trace."""
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(EXIT_INTERRUPTED)
    except IsolaneError as error:
        unusable = error.http_status == Unavailable.http_status
        _fail(error.detail, EXIT_UNUSABLE if unusable else EXIT_FAILED)
    except EmbeddedError as error:
        _fail(str(error), EXIT_FAILED)
    except ImproperlyConfigured as error:
        _fail(str(error), EXIT_UNUSABLE)
    except (OperationalError, InterfaceError, psycopg.OperationalError) as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        _fail(f"PostgreSQL does not answer ({reason}); is the platform running?", EXIT_UNUSABLE)
    except (DataError, psycopg.DataError, UnicodeError) as error:
        # Services check their arguments; this catches values that they do not check.
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        _fail(f"A value does not fit: {reason}.", EXIT_FAILED)


def _fail(message: str, code: int) -> NoReturn:
    click.secho(f"Error: {message}", fg="red", err=True)
    sys.exit(code)
