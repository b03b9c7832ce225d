"""A terminal without a platform: every --help works, and so does checking a blueprint.

No tenant and no server takes part, so there is no data of one that another could notice.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
HELP = """
import json
from click import Context, Group
from click.testing import CliRunner
from orchestrator.cli.main import COMMANDS, cli

def commands():
    for name in COMMANDS:
        yield (name,)
        found = cli.get_command(Context(cli), name)
        if isinstance(found, Group):
            yield from ((name, inner) for inner in found.commands)

print(json.dumps({" ".join(names): CliRunner().invoke(cli, [*names, "--help"]).exit_code for names in commands()}))
"""
SOURCE = "name: flow\nsteps:\n  - key: one\n    uses: own.work\n    with: {n: 1}\n"
NODES = """
from isolane import NodeContext, node

@node("own.work")
def work(ctx: NodeContext, *, n: int) -> int:
    return n
"""


def python(*arguments: str, **extra: str) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **extra}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


def validate(file: Path, *options: str, **extra: str) -> "subprocess.CompletedProcess[str]":
    return python("-m", "orchestrator.cli", "blueprints", "validate", str(file), *options, **extra)


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    """A blueprint's file with its node beside it."""
    (tmp_path / "own.py").write_text(NODES)
    file = tmp_path / "flow.yaml"
    file.write_text(SOURCE)
    return file


def test_every_command_has_help() -> None:
    shown = json.loads(python("-c", HELP).stdout)
    assert {
        "explain",
        "tenants list",
        "executions costs",
        "blueprints validate",
        "nodes show",
    } <= set(shown)
    assert set(shown.values()) == {0}


def test_what_needs_a_platform_says_so() -> None:
    refused = python("-m", "orchestrator.cli", "tenants", "list")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "No platform runs here" in refused.stderr


def test_a_file_is_checked_but_for_its_nodes(flow: Path) -> None:
    checked = validate(flow, ISOLANE_API_KEY="isl_of_elsewhere")
    assert (checked.returncode, checked.stdout) == (0, "flow fits.\n")
    assert "No platform runs here: names of nodes and their parameters were not checked" in (
        checked.stderr
    )
    flow.write_text(SOURCE.replace("n: 1", "n: '${steps.one.x}'"))
    refused = validate(flow)
    assert refused.returncode == 1
    assert "flow.yaml:5: $.steps[0].with.n" in refused.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("own.work", "own.wrok"), "flow.yaml:4: $.steps[0].uses: there is no node 'own.wrok'"),
        (("n: 1", "n: one"), "flow.yaml:5: $.steps[0].with.n: 'one' is not of type 'integer'"),
    ],
)
def test_a_file_is_checked_with_the_nodes_of_this_machine(
    flow: Path, change: tuple[str, str], said: str
) -> None:
    checked = validate(flow, "--package", "own")
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "flow fits.\n", "")
    flow.write_text(SOURCE.replace(*change))
    refused = validate(flow, "--package", "own")
    assert refused.returncode == 1
    assert said in refused.stderr


def test_what_publishing_would_do_is_known_by_a_platform_only(flow: Path) -> None:
    refused = validate(flow, "--tenant", "acme")
    assert refused.returncode == 2
    assert "No platform runs here: start one" in refused.stderr
