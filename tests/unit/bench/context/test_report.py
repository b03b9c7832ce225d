"""The report on the cost of the context."""

import io
import json

from rich.console import Console

from bench.context.report import document, tables, verdicts
from tests.unit.bench.context.test_figures import measured

MEASURED = [
    measured("plain-on", rate=100, ms=12),
    measured("plain-off", rate=105, ms=10),
    measured("query-on", rate=50),
    measured("query-off", rate=100),
]


def test_verdicts_name_the_figures_over_the_limit() -> None:
    assert list(verdicts(MEASURED)) == [
        "plain against off, under load: +5.0 %, under 10 %",
        "plain against off, idle: +20.0 %, NOT under 10 %",
        "query against off, under load: +100.0 %, NOT under 10 %",
        "query against off, idle: +0.0 %, under 10 %",
        "query, connections: exactly one per run (1.000)",
    ]


def test_a_verdict_shows_that_the_rounds_leave_a_doubt() -> None:
    other = [measured("plain-on", number=1, rate=50), measured("plain-off", number=1, rate=100)]
    more = [measured("plain-on", number=2, rate=100), measured("plain-off", number=2, rate=105)]
    first, *_ = verdicts([*MEASURED, *other, *more])
    assert first == "plain against off, under load: +5.0 %, under 10 %, but not for certain"


def test_the_tables_show_rates_times_and_processes() -> None:
    text = io.StringIO()
    for table in tables(MEASURED):
        Console(file=text, width=160).print(table)
    shown = [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in text.getvalue().splitlines()
    ]
    once = "{0} ({0}..{0})".format
    assert ["plain", "off", "runs/s", once("100.0"), once("105.0"), once("5.0")] in shown
    assert ["query", "off", "isolane-worker", "6.00", "4.00"] in shown


def test_the_document_holds_all_measurements() -> None:
    written = json.loads(json.dumps(document(MEASURED, {"cores": 2}, ["noisy"])))
    assert written["machine"] == {"cores": 2}
    assert written["notes"] == ["noisy"]
    assert len(written["samples"]) == len(MEASURED)
    assert written["rows"][1]["one_each"] is True
