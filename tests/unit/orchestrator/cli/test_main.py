"""The command's root: help without settings, and errors as one line with an exit code."""

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import click
import psycopg
import pytest
from click.testing import CliRunner
from django.core.exceptions import ImproperlyConfigured
from django.db import DataError, OperationalError

from foundation.errors import Conflict, Unavailable
from foundation.keyring import is_valid_key
from orchestrator.embedded.errors import EmbeddedError

ROOT = Path(__file__).parents[4]
# The package re-exports a function of the same name.
module = import_module("orchestrator.cli.main")


def isolane(home: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the command as a process of its own, with nothing in its environment."""
    variables: Mapping[str, str] = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "ISOLANE_HOME": str(home),
        **environment,
    }
    return subprocess.run(
        [sys.executable, "-m", "orchestrator.cli", *arguments],
        env=variables,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_needs_neither_settings_nor_a_database(tmp_path: Path) -> None:
    # An environment in which the settings could not be loaded.
    shown = isolane(tmp_path, "--help", DATABASE_URL="postgresql://nowhere/x")
    assert shown.returncode == 0
    assert all(name in shown.stdout for name in module.COMMANDS)
    assert shown.stderr == ""


def test_an_unknown_command_is_a_usage_error(tmp_path: Path) -> None:
    refused = isolane(tmp_path, "tennants")
    assert refused.returncode == 2
    assert "No such command 'tennants'" in refused.stderr


def test_missing_settings_are_one_line(tmp_path: Path) -> None:
    named = {"DATABASE_URL": "postgresql://nowhere/x", "BASE_HOST": "isolane.example.com"}
    refused = isolane(tmp_path, "tenants", "list", **named)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert refused.stderr.startswith("Error: REDIS_URL is not set.")
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (Conflict("It is taken."), 1, "Error: It is taken."),
        (Unavailable("It is away."), 2, "Error: It is away."),
        (EmbeddedError("It runs already."), 1, "Error: It runs already."),
        (ImproperlyConfigured("X is not set."), 2, "Error: X is not set."),
        (OperationalError("no route\nmore"), 2, "Error: PostgreSQL does not answer (no route)"),
        (psycopg.OperationalError("refused"), 2, "Error: PostgreSQL does not answer (refused)"),
        (DataError("value too long\nmore"), 1, "Error: A value does not fit: value too long."),
        (psycopg.DataError("out of range"), 1, "Error: A value does not fit: out of range."),
        (UnicodeError("no text"), 1, "Error: A value does not fit: no text."),
        (click.ClickException("Not so."), 1, "Error: Not so."),
        (click.UsageError("Wrong."), 2, "Error: Wrong."),
    ],
)
def test_an_expected_error_is_one_line_and_a_code(
    raised: Exception,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(**_: object) -> None:
        raise raised

    monkeypatch.setattr(module, "cli", fail)
    with pytest.raises(SystemExit) as ended:
        module.main()
    assert ended.value.code == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(message)
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize("raised", [KeyboardInterrupt, click.Abort])
def test_an_interruption_ends_quietly(
    raised: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(**_: object) -> None:
        raise raised

    monkeypatch.setattr(module, "cli", interrupt)
    with pytest.raises(SystemExit) as ended:
        module.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == ""


def test_a_generated_key_fits_the_ring() -> None:
    made = CliRunner().invoke(module.cli, ["keys", "generate"])
    assert made.exit_code == 0
    assert is_valid_key(made.output.strip())


def test_ids_are_not_cut_in_a_pipe() -> None:
    words = ["exec_" + "0" * 36, "b" * 100, "succeeded", "w123456@" + "h" * 60]
    script = (
        "from rich.table import Table; from orchestrator.cli.support.django import CONSOLE; "
        f"CONSOLE.print(Table(*{words}))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert all(word in shown.stdout for word in words)
