"""orchestrator.broker_messages: the frame of a valid message, and the rate of log lines about others."""

from typing import Any

import pytest

from orchestrator.broker_messages import Dropped, fault


def message(**changes: Any) -> dict[str, Any]:
    properties = {"delivery_tag": "t", "delivery_info": {}, "body_encoding": "base64"}
    whole = {"body": "W10=", "headers": {}, "properties": properties}
    return whole | {"content-type": "application/json", "content-encoding": "utf-8"} | changes


def test_a_message_of_celery_has_no_fault() -> None:
    assert fault(message()) == ""


@pytest.mark.parametrize(
    "garbage",
    [
        None, [], "x", 7, {}, message(properties=None), message(headers=[]), message(properties={}), message(body=7),
        message(properties={**message()["properties"], "delivery_tag": []}), message(headers={"compression": "bzip2"}),
        message(properties={**message()["properties"], "body_encoding": "x"}),
        message(properties={**message()["properties"], "delivery_info": None}),
        message(**{"content-type": "application/x-python-serialize"}), message(**{"content-encoding": "x"}),
    ],
)  # fmt: skip
def test_everything_else_has_one(garbage: Any) -> None:
    assert fault(garbage)


def test_garbage_is_told_of_once_a_second_without_its_content(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    dropped = Dropped(clock=lambda: now)
    for _ in range(1000):
        dropped("lane.x", "it is not an object")
    now = 1.0
    dropped("lane.x", "it is not an object")
    assert [record.getMessage() for record in caplog.records] == [
        "1 unreadable message(s) dropped, the last one from lane.x: it is not an object",
        "1000 unreadable message(s) dropped, the last one from lane.x: it is not an object",
    ]
