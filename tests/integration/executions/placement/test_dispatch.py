"""Sending chains: to the lane and nowhere else, ids only; a broker that is away loses nothing and delays nobody."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis
from django.db import OperationalError

from executions.placement import dispatch
from executions.placement.dispatch import admit_and_send
from executions.semantics.reasons import EndReason
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.worker.boot import WorkerBoot
from executions.worker.loops.lease import LeaseLoop
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import held_by, make_run, resend_after, run_of
from tests.plugin import PATHS

Message = dict[str, Any]


@pytest.fixture(autouse=True)
def _quick_resend(boot: WorkerBoot) -> None:
    """Send a chain again if it is not claimed by the loop's second look."""
    resend_after(boot, 1e-6)


@contextmanager
def away(broker: "redis.Redis") -> Iterator[None]:
    """Refuse new connections to the broker and end all open ones."""
    socket = PATHS.sockets / "valkey.sock"
    hidden = socket.rename(socket.with_suffix(".away"))
    broker.client_kill_filter(_type="normal", skipme=True)
    try:
        yield
    finally:
        hidden.rename(socket)


def messages(broker: "redis.Redis", boot: WorkerBoot) -> list[Message]:
    """Return the messages in the machine's lane, in the order in which they were sent."""
    raw = broker.lrange(boot.lane, 0, -1)
    return [json.loads(text) for text in reversed(raw)]


def body(message: Message) -> tuple[list[Any], Message, Message]:
    args, kwargs, embedded = json.loads(base64.b64decode(message["body"]))
    return args, kwargs, embedded


def test_a_message_goes_to_the_lane_and_holds_ids_only(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, broker: "redis.Redis"
) -> None:
    runs = {tenant.id: make_run(tenant, password="hunter2") for tenant in (acme, globex)}
    admit_and_send()
    sent = messages(broker, boot)
    assert len(sent) == 2
    assert [key for key in broker.keys("*") if broker.type(key) == b"list"] == [boot.lane.encode()]
    for message in sent:
        args, kwargs, embedded = body(message)
        tenant_id = args[0]
        assert (args, kwargs) == ([tenant_id, str(runs[tenant_id]), 1, "one"], {})
        (following,) = embedded["chain"]
        assert following["args"] == [tenant_id, str(runs[tenant_id]), 1, "two"]
        assert following["options"]["queue"] == boot.lane
        assert message["headers"]["shadow"] == "flow/one"
        assert "hunter2" not in json.dumps(message) + str(body(message))


def test_a_run_is_sent_from_its_checkpoint(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, broker: "redis.Redis"
) -> None:
    run_id = make_run(acme)
    with tenant_scope(acme):
        run = run_of(acme, run_id)
        run.next_step = "two"
        run.save()
    admit_and_send()
    args, _, embedded = body(messages(broker, boot)[0])
    assert (args[3], embedded["chain"]) == ("two", [])


def test_a_broker_that_is_away_loses_nothing(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, broker: "redis.Redis"
) -> None:
    runs = {make_run(tenant) for tenant in (acme, globex)}
    loop = LeaseLoop(boot)
    with away(broker):
        admit_and_send(bounded=True)
        assert held_by(boot) == runs
    assert messages(broker, boot) == []
    loop.turn()
    loop.turn()
    assert {body(message)[0][1] for message in messages(broker, boot)} == {*map(str, runs)}
    assert held_by(boot) == runs


def test_a_caller_of_web_does_not_hear_that_the_database_went_away_after_the_commit(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {make_run(tenant) for tenant in (acme, globex)}

    def go_away() -> list[Placement]:
        raise OperationalError("the server is away")

    monkeypatch.setattr(dispatch, "admit", go_away)
    admit_and_send(bounded=True)
    with pytest.raises(OperationalError):
        admit_and_send()  # a worker's thread replaces its connection
    monkeypatch.undo()
    admit_and_send()
    assert held_by(boot) == runs


def test_what_was_emptied_from_the_broker_is_sent_again_under_the_same_epoch(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, broker: "redis.Redis"
) -> None:
    for tenant in (acme, globex):
        make_run(tenant)
    admit_and_send()
    broker.flushall()
    loop = LeaseLoop(boot)
    loop.turn()
    loop.turn()
    assert [body(message)[0][2] for message in messages(broker, boot)] == [1, 1]


def test_nothing_is_sent_before_the_idle_time(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, broker: "redis.Redis"
) -> None:
    resend_after(boot, 9)
    for tenant in (acme, globex):
        make_run(tenant)
    admit_and_send()
    broker.flushall()
    loop = LeaseLoop(boot)
    for _ in range(3):
        loop.turn()
    assert messages(broker, boot) == []


def test_the_loop_of_a_worker_with_many_runs_does_not_wait_for_the_broker(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, broker: "redis.Redis"
) -> None:
    """Each try to connect would cost seconds, and the lease is renewed by the same thread."""
    for tenant in (acme, globex) * 4:
        make_run(tenant)
    loop = LeaseLoop(boot)
    with away(broker):
        admit_and_send(bounded=True)
        loop.turn()
        began = time.monotonic()
        loop.turn()
        took = time.monotonic() - began
    assert took < 1.5
    assert len(held_by(boot)) == 8


def test_messages_of_two_placements_are_told_apart_by_their_epochs(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, broker: "redis.Redis"
) -> None:
    run_id = make_run(acme)
    make_run(globex)
    admit_and_send()
    with tenant_scope(acme):
        old = boot.placement(acme.id, str(run_id), 1)
        assert hand_back(old, PlacementEnd(reason=EndReason.WORKER_STOPPED, lost=True))
    admit_and_send()
    epochs = [
        body(found)[0][2] for found in messages(broker, boot) if str(run_id) in str(body(found))
    ]
    assert epochs == [1, 2]
