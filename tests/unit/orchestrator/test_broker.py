"""orchestrator.broker: one Redis client per channel, for web and workers alike, and steady tries to connect."""

from typing import Any

import pytest

from orchestrator.broker import LaneConnection, LaneTransport
from orchestrator.celery import app


@pytest.fixture
def channel() -> Any:
    """Of a server that is never spoken to."""
    connection = LaneConnection("redis+socket:///nowhere.sock")
    transport = connection.get_transport_cls()(client=connection)
    made = transport.Channel.__new__(transport.Channel)
    made._pool = made._async_pool = None
    made._get_pool = lambda **_: type("Pool", (), {"connection_kwargs": {}})()
    made.Client = lambda connection_pool: type("Client", (), {"connection_pool": connection_pool})()
    return made


def test_the_platform_uses_it() -> None:
    assert isinstance(app.connection_for_write(), LaneConnection)
    assert app.connection_for_write().get_transport_cls() is LaneTransport


def test_what_is_published_goes_through_it_too() -> None:
    lent = LaneConnection("redis+socket:///nowhere.sock").Pool(limit=1).acquire()
    assert lent.get_transport_cls() is LaneTransport


def test_other_brokers_are_left_alone() -> None:
    assert LaneConnection("memory://").get_transport_cls() is not LaneTransport


def test_a_channel_keeps_its_client_as_long_as_its_pool(channel: Any) -> None:
    first = channel._create_client()
    assert channel._create_client() is first
    channel._pool = None  # what kombu does when it disconnects
    second = channel._create_client()
    assert second is not first
    assert second.connection_pool is channel.pool


def test_only_a_message_that_was_noted_is_forgotten(
    channel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten: list[str] = []
    monkeypatch.setattr(
        "kombu.transport.virtual.base.Channel.basic_ack",
        lambda _self, tag, multiple=False: forgotten.append(tag),
    )
    channel._qos = type("Qos", (), {"_delivered": {"noted": object()}})()
    for tag in ("noted", "taken without a note"):
        channel.basic_ack(tag)
    assert forgotten == ["noted"]


def test_the_consumers_client_is_its_own(channel: Any) -> None:
    assert channel._create_client(asynchronous=True) is not channel._create_client()


# --- a broker that is away
def test_a_consumer_tries_again_every_second_and_does_not_give_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("kombu.utils.functional.sleep", slept.append)
    tries: list[float] = []

    def told(_error: Exception, wait_s: float) -> None:
        tries.append(wait_s)
        if len(tries) == 200:
            raise KeyboardInterrupt

    most = app.conf.broker_connection_max_retries
    connection = LaneConnection("redis+socket:///nowhere.sock")
    with pytest.raises(KeyboardInterrupt):
        connection.ensure_connection(told, most)  # as Celery's consumer calls it
    assert set(tries) == {1.0}
    assert sum(slept) == len(tries) - 1


def test_a_worker_that_shall_stop_does_not_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop() -> None:
        raise SystemExit

    connection = LaneConnection("redis+socket:///nowhere.sock")
    with pytest.raises(SystemExit):
        connection.ensure_connection(lambda *_: None, None, callback=stop)


def test_a_channel_is_closed_also_if_nobody_can_be_told(
    channel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[set[str]] = []

    def close(self: Any) -> None:
        told.append(set(self.auto_delete_queues))
        if self.auto_delete_queues:
            raise OSError("away")

    monkeypatch.setattr("kombu.transport.redis.Channel.close", close)
    channel.connection_errors = (OSError,)
    channel.auto_delete_queues = {"worker.pidbox"}
    channel.close()
    assert told == [{"worker.pidbox"}, set()]
