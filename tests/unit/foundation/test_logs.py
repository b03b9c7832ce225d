"""A log line is one JSON object."""

import json
import logging

import pytest

from foundation.logs import JsonFormatter, OneASecond, bind, unbind


def line(**attributes: object) -> dict[str, object]:
    fields = {"name": "x", "levelname": "INFO", "msg": "ran %s", "args": ("well",), **attributes}
    formatted = JsonFormatter().format(logging.makeLogRecord(fields))
    assert "\n" not in formatted
    parsed: dict[str, object] = json.loads(formatted)
    return parsed


def test_the_fixed_fields() -> None:
    assert line(created=0.5) == {
        "timestamp": "1970-01-01T00:00:00.500+00:00",
        "level": "INFO",
        "logger": "x",
        "message": "ran well",
    }


def test_a_runs_line_carries_its_ids_and_nothing_unknown() -> None:
    shown = line(event="STEP", execution_id="e", tenant_id=1, step="pay", password="p")
    assert {key: shown[key] for key in ("event", "execution_id", "tenant_id", "step")} == {
        "event": "STEP",
        "execution_id": "e",
        "tenant_id": 1,
        "step": "pay",
    }
    assert "password" not in shown


def test_a_trace_stays_on_the_line() -> None:
    broken = ValueError("broken")
    shown = line(exc_info=(type(broken), broken, None))
    assert "ValueError: broken" in str(shown["trace"])


def test_what_is_no_json_is_written_as_text() -> None:
    assert line(execution_id=ValueError("x"))["execution_id"] == "x"


def test_a_line_about_a_resource_has_all_that_the_specification_asks_for() -> None:
    told = line(
        execution_id="e1", tenant_id="acme", event="RESOURCE_ALLOCATED", resource="db",
        resource_type="database", resource_id="database_1",
    )  # fmt: skip
    assert told.keys() >= {
        "timestamp", "level", "execution_id", "tenant_id", "event", "resource_type", "resource_id",
    }  # fmt: skip
    assert (told["resource_type"], told["resource_id"]) == ("database", "database_1")


def test_what_is_bound_is_on_every_line_of_the_thread_until_it_is_unbound() -> None:
    record = logging.makeLogRecord({"msg": "said by a library", "name": "httpx"})
    bind({"execution_id": "e1", "tenant_id": "acme", "epoch": 2})
    try:
        line = json.loads(JsonFormatter().format(record))
        own = logging.makeLogRecord({"msg": "own", "execution_id": "e2"})
        assert json.loads(JsonFormatter().format(own))["execution_id"] == "e2"
    finally:
        unbind()
    assert (line["execution_id"], line["tenant_id"], line["epoch"]) == ("e1", "acme", 2)
    assert "execution_id" not in json.loads(JsonFormatter().format(record))


# --- one line a second
class Clock:
    """Time that stands until it is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def record(msg: str = "refused %s", **attributes: object) -> logging.LogRecord:
    return logging.makeLogRecord({"name": "x", "msg": msg, **attributes})


def test_lines_of_one_cause_are_written_once_a_second_and_counted() -> None:
    clock = Clock()
    limited = OneASecond(clock)
    assert [limited.filter(record(args=(number,))) for number in range(5)] == [True] + [False] * 4
    clock.now = 0.9
    assert not limited.filter(record())
    clock.now = 1.0
    later = record()
    assert limited.filter(later)
    assert vars(later)["suppressed"] == 5
    assert line(**vars(later))["suppressed"] == 5
    clock.now = 2.0
    last = record()
    assert limited.filter(last)
    assert "suppressed" not in vars(last)


@pytest.mark.parametrize(
    "other",
    [
        record(name="y"),
        record("accepted %s"),
        record(event="FULL"),
        record(exc_info=(ValueError, ValueError("x"), None)),
    ],
)
def test_another_cause_is_another_line(other: logging.LogRecord) -> None:
    limited = OneASecond(Clock())
    assert limited.filter(record())
    assert limited.filter(other)
    assert not limited.filter(other)


def test_what_follows_the_first_line_is_no_cause_of_its_own() -> None:
    limited = OneASecond(Clock())
    assert limited.filter(record("out of system resource\nsocket: 1"))
    assert not limited.filter(record("out of system resource\nsocket: 2"))


def test_ever_new_texts_are_one_cause_in_the_end() -> None:
    clock = Clock()
    limited = OneASecond(clock)
    assert sum(limited.filter(record(f"text {number}")) for number in range(5_000)) == 201
    clock.now = 1.5
    assert limited.filter(record("text 4999"))
