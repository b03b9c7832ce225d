"""The verbs work wherever the project lies."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_pip_finds_the_constraints_in_a_directory_with_blanks(tmp_path: Path) -> None:
    project = tmp_path / "x y"
    project.mkdir()
    for name in ("Makefile", "constraints.txt"):
        shutil.copy(ROOT / name, project)
    shown = subprocess.run(
        ["make", "--silent", "--eval", "show: ; @echo $$PIP_CONSTRAINT", "show"],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    # As pip reads it: several files, separated by blanks.
    assert [(project / name).is_file() for name in shown.stdout.split()] == [True]
