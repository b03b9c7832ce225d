"""docs/isolation.md says of every level and limit what it gives, and what the levels cost."""

from dataclasses import fields

import pytest

from isolane.limits import RunLimits
from isolane.results import Code
from orchestrator import settings as product
from tests.plugin import ROOT

LEVELS = tuple(product.RUNTIMES)
EXCESSES = (Code.TIMEOUT, Code.RAM_EXCEEDED, Code.PROCESS_LIMIT, Code.DISK_FULL)


def section(title: str) -> str:
    """The text below a heading."""
    text = (ROOT / "docs" / "isolation.md").read_text(encoding="utf-8")
    assert f"\n## {title}\n" in text
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_says_what_it_gives_and_what_not(level: str) -> None:
    assert section(f"What `{level}` adds").count("\n- **") >= 3
    assert section(f"What `{level}` does not promise").count("\n- **") >= 3


def test_every_limit_says_what_it_bounds_and_how_an_excess_ends() -> None:
    text = section("Limits")
    named = [field.name for field in fields(RunLimits) if field.name != "seconds"]
    assert [name for name in (*named, "max_run_minutes") if f"`{name}`" not in text] == []
    assert [code for code in EXCESSES if f"`{code}`" not in text] == []


def test_the_cost_of_every_level_is_measured() -> None:
    rows = [line.split("|") for line in section("What the levels cost").splitlines() if "|" in line]
    measured = {row[1].strip(" `"): row[2:-1] for row in rows}
    for level in LEVELS:
        assert all(any(letter.isdigit() for letter in cell) for cell in measured[level])


def test_the_shared_mode_is_evaluated_with_its_trade_off() -> None:
    text = section("When `shared` is worth it")
    for word in ("trust", "express", "given up", "CPU"):
        assert word in text
