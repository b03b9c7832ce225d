"""The report of the benchmark."""

import io
import json

from rich.console import Console

from bench.report import document, table
from tests.unit.bench.test_figures import sample

SAMPLES = [
    sample("chain", number=0, rate=50),
    sample("plain", number=0, rate=200),
    sample("plain", number=1, rate=400),
    sample("chain", number=1, rate=50),
]


def shown() -> list[list[str]]:
    text = io.StringIO()
    Console(file=text, width=160).print(table(SAMPLES))
    return [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in text.getvalue().splitlines()
        if line.startswith("│")
    ]


def test_the_table_shows_median_spread_and_ratios() -> None:
    assert shown() == [
        ["1", "plain", "300 (200..400)", "1.00", "", "7.0 (7.0..7.0)", "30.0", "3.0"],
        ["1", "isolane chain", "50.0 (50.0..50.0)", "0.19", "", "7.0 (7.0..7.0)", "30.0", "3.0"],
    ]


def test_the_document_holds_all_measurements() -> None:
    written = json.loads(json.dumps(document(SAMPLES, {"cores": 2}, ["noisy"])))
    assert written["machine"] == {"cores": 2}
    assert written["notes"] == ["noisy"]
    assert len(written["samples"]) == len(SAMPLES)
    assert written["rows"][0]["rate"] == {"median": 300.0, "least": 200.0, "most": 400.0}
