"""orchestrator.processes: the table in deploy/README.md is the one that is used."""

from pathlib import Path

from orchestrator.processes import OPERATOR, PROCESSES

README = Path(__file__).parents[3] / "deploy" / "README.md"


def test_the_readme_shows_the_table() -> None:
    lines = README.read_text().splitlines()
    for process in PROCESSES:
        if process is OPERATOR:
            continue
        needs = ", ".join(f"`{name}`" for name in process.needs)
        uses = ", ".join(f"`{name}`" for name in process.uses) or "-"
        assert f"| {process.name} | {needs} | {uses} |" in lines
