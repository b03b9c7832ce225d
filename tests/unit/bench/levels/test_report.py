"""The report of the benchmark of levels."""

import io
import json

from rich.console import Console

from bench.levels.report import aims, document, table
from tests.unit.bench.levels.test_figures import ALL


def test_the_table_shows_every_row() -> None:
    text = io.StringIO()
    Console(file=text, width=200).print(table(ALL))
    cells = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in text.getvalue().splitlines()
        if line.startswith("│")
    ]
    assert cells[0] == [
        "1", "process", "2", "50.0 (50.0..50.0)", "1.00", "0.62", "50.0 (50.0..50.0)", "150.0", "100.0", "3.0", "6.0",
    ]  # fmt: skip
    assert cells[4][1:4] == ["bare sandboxed forks", "", "80.0 (80.0..80.0)"]
    assert len(cells) == 6


def test_aims_say_what_was_found() -> None:
    assert "shared, 1 steps: 300 tenants to the fewest: 0.6, aim 0.7: NOT met" in aims(ALL)
    assert "process, 1 steps: 300 tenants to the fewest: 0.96, aim 0.95: met" in aims(ALL)


def test_the_document_holds_all_measurements() -> None:
    written = json.loads(json.dumps(document(ALL, {"cores": 2}, ["noisy"])))
    assert written["machine"] == {"cores": 2}
    assert len(written["samples"]) == len(ALL)
    assert written["aims"] == list(aims(ALL))
