"""The conformance page names only tests and modules that exist, and every shown clause names a test."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ROW = re.compile(r"^\| ([NMWFS]-\S+) \| (.+) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
REFERENCE = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
PATH = re.compile(r"`((?:isolane|orchestrator|tenants|executions|resources|docs|deploy)/[\w/.-]*)")
STATUSES = ("shown", "partly", "open", "deviation", "n/a")


@cache
def rows() -> list[tuple[str, str, str, str]]:
    """Id, status, code and test of each clause."""
    text = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    return [(row[0], row[2], row[3], row[4]) for row in ROW.findall(text)]


def test_every_clause_has_a_known_status_and_an_id_of_its_own() -> None:
    ids = [clause for clause, *_ in rows()]
    assert len(ids) == len(set(ids)) > 250
    assert [clause for clause, status, *_ in rows() if not status.startswith(STATUSES)] == []


@pytest.mark.parametrize("status", ["shown", "partly"])
def test_what_is_shown_names_its_test(status: str) -> None:
    without = [
        c for c, found, _, test in rows() if found.startswith(status) and "tests/" not in test
    ]
    assert without == []


def test_no_clause_names_a_test_twice() -> None:
    named = {clause: REFERENCE.findall(test) for clause, _, _, test in rows()}
    assert [clause for clause, tests in named.items() if len(tests) > len(set(tests))] == []


def test_every_named_test_exists() -> None:
    named = {match for *_, test in rows() for match in REFERENCE.findall(test)}
    missing = [f"{file}::{name}" for file, name in named if f"def {name}(" not in _read(file)]
    assert missing == []


def test_every_module_of_what_is_built_exists() -> None:
    built = [row for row in rows() if not row[1].startswith("open")]
    missing = {
        path for _, _, code, _ in built for path in PATH.findall(code) if not (ROOT / path).exists()
    }
    assert missing == set()


def _read(file: str) -> str:
    path = ROOT / file
    return path.read_text(encoding="utf-8") if path.exists() else ""
