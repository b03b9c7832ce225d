"""Access to the broker neither ends a worker nor reveals the broker's password."""

import base64
import json
from typing import Any

import redis

from orchestrator.celery import app
from tenants.scope import TenantRef
from tests.acceptance.conftest import StartWorker
from tests.acceptance.runs import ended, start_run
from tests.plugin import SERVERS
from tests.waiting import wait_for


def frame(**changes: Any) -> dict[str, Any]:
    """A message for `executions.probe_lane`, as Celery sends it, with changes."""
    body = base64.b64encode(json.dumps([[], {}, {}]).encode()).decode()
    properties = {"delivery_tag": "t", "delivery_info": {}, "body_encoding": "base64"}
    headers = {
        "task": "executions.probe_lane",
        "id": "i",
        "lang": "py",
        "argsrepr": "",
        "kwargsrepr": "",
    }
    whole = {
        "body": body, "content-type": "application/json", "content-encoding": "utf-8",
        "headers": headers, "properties": properties,
    }  # fmt: skip
    return whole | changes


def headers(**changes: Any) -> dict[str, Any]:
    return frame(headers=frame()["headers"] | changes)


def properties(**changes: Any) -> dict[str, Any]:
    return frame(properties=frame()["properties"] | changes)


def body(raw: bytes) -> dict[str, Any]:
    return frame(body=base64.b64encode(raw).decode())


SHAPES: list[Any] = [
    None, 7, "text", [], {}, {"properties": {}}, {"properties": 1, "headers": {}},
    frame(properties={}), frame(properties=[]), frame(headers=None), frame(headers=[]),
    properties(delivery_tag=None), properties(delivery_tag=[]), properties(delivery_info=None),
    properties(body_encoding="rot13"), properties(body_encoding=["x"]), properties(priority="x"),
    properties(reply_to=7, correlation_id=[]),
    frame(body=None), frame(body=7), frame(body="%%%"), frame(body={"a": 1}),
    body(b"not json"), body(b"7"), body(b"[1]"), body(b'{"a": 1}'), body(b"[[], [], []]"), body(b"[1, 2, 3]"),
    frame(**{"content-type": "application/x-python-serialize"}), frame(**{"content-type": ["x"]}),
    frame(**{"content-encoding": "nonsense"}), frame(**{"content-type": None}),
    headers(task=None), headers(task=[]), headers(task="os.system"), headers(id=[]), headers(id=None),
    headers(compression="bzip2"), headers(compression="nonsense"),
    headers(eta="soon"), headers(eta=[1]), headers(expires="never"), headers(expires={}),
    headers(timelimit=7), headers(retries="x"), headers(group=[], root_id={}),
    headers(stamps=7, stamped_headers=7),
    headers(lang=7), headers(meth=[]), headers(shadow={}), headers(kwargsrepr=[]), headers(origin=[]),
]  # fmt: skip
GARBAGE = [
    b"garbage",
    b"\xff\xfe\x00",
    b"[" * 100_000,
    b"9" * 5_000,
    b"x" * 20_000_000,
    *(json.dumps(shape).encode() for shape in SHAPES),
]
INSPECTED = ("stats", "conf", "report", "active_queues", "registered")


def test_garbage_ends_no_worker_and_no_worker_tells_the_password(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker, broker: "redis.Redis"
) -> None:
    worker = start_worker()
    row = worker.row()
    assert row is not None
    for raw in GARBAGE:
        broker.publish("/0.celery.pidbox", raw)
        broker.lpush(row.lane, raw)
    wait_for(lambda: not broker.llen(row.lane), "the worker to have taken all of it")
    for tenant in (acme, globex):
        assert ended(tenant, start_run(tenant, {"uses": "test.identity"})).worker == worker.name
    assert worker.process.poll() is None
    lines = worker.log.read_text().splitlines()
    told = [line for line in lines if "MESSAGE_DROPPED" in line]
    assert 1 <= len(told) <= 5  # one a second, not one each

    password = SERVERS.secrets.valkey_worker_password
    for name in INSPECTED:
        answers = app.control.broadcast(
            name, reply=True, limit=1, timeout=5, destination=[worker.name]
        )
        assert [list(answer) for answer in answers or ()] == [[worker.name]], name
        assert password not in repr(answers), name
    assert password not in worker.log.read_text()
