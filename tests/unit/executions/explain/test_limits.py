"""Each code of an excess has a way out that names the limit, and the page says the same."""

from pathlib import Path

import pytest

from executions.explain.limits import WAYS_OUT
from isolane.results import Code

PAGE = Path(__file__).parents[4] / "docs" / "semantics.md"
NAMED = {
    Code.TIMEOUT: "max_run_minutes",
    Code.RAM_EXCEEDED: "ram_mb",
    Code.PROCESS_LIMIT: "processes",
    Code.DISK_FULL: "disk_mb",
}


@pytest.mark.parametrize("code", NAMED)
def test_the_limit_is_named_in_the_sentence_and_on_the_page(code: Code) -> None:
    assert NAMED[code] in WAYS_OUT[code]
    page = (
        PAGE.read_text(encoding="utf-8").partition("## Limits and usage")[2].partition("\n## ")[0]
    )
    rows = [line for line in page.splitlines() if line.startswith("|") and f"`{code}`" in line]
    assert f"`{NAMED[code]}`" in rows[0]


def test_a_timeout_may_come_from_cpu() -> None:
    assert "cpu" in WAYS_OUT[Code.TIMEOUT].split()


def test_no_other_code_is_a_limits() -> None:
    assert set(WAYS_OUT) == set(NAMED)
