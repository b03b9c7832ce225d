"""Flower's login: allowed tries and their rate."""

import logging
from base64 import b64encode

import pytest

from foundation.client_address import networks_of
from foundation.failure_counts import FailureCounts
from orchestrator.flower_login import REALM, FlowerLogin

RIGHT = "Basic " + b64encode("ada:pässword".encode()).decode()
WRONG = "Basic " + b64encode(b"ada:guess").decode()
HERE, THERE = "203.0.113.7", "198.51.100.1"


class Door:
    """A login, and the time."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.login = FlowerLogin(
            user="ada",
            password="pässword",
            trusted=networks_of(["10.0.0.0/8"]),
            counts=FailureCounts(clock=lambda: self.now),
        )

    def knock(
        self, authorization: str, peer: str = HERE, forwarded: str = ""
    ) -> tuple[int, str] | None:
        return self.login.refusal(authorization=authorization, peer=peer, forwarded=forwarded)


def test_wrong_ones_make_their_address_wait_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    door = Door()
    with caplog.at_level(logging.WARNING):
        assert [door.knock(WRONG) for _ in range(6)] == [(401, REALM)] * 6
    assert {vars(record)["event"] for record in caplog.records} == {"LOGIN_FAILED"}
    assert {vars(record)["address"] for record in caplog.records} == {HERE}
    assert "guess" not in caplog.text
    assert door.knock(RIGHT) == (429, "1")
    assert door.knock(RIGHT, THERE) is None
    door.now += 1
    assert door.knock(WRONG) == (401, REALM)
    assert door.knock(RIGHT) == (429, "2")
    door.now += 2
    assert door.knock(RIGHT) is None
    assert [door.knock(WRONG) for _ in range(6)] == [(401, REALM)] * 6


@pytest.mark.parametrize("sent", ["Basic", "Basic !!", "Bearer x", "Basic /w==", WRONG, "x" * 9000])
def test_whatever_is_sent_is_compared_and_counted(sent: str) -> None:
    door = Door()
    assert [door.knock(sent) for _ in range(7)] == [(401, REALM)] * 6 + [(429, "1")]


def test_who_sends_nothing_is_asked_and_not_counted() -> None:
    door = Door()
    assert {door.knock("") for _ in range(50)} == {(401, REALM)}
    assert door.knock(RIGHT) is None


def test_callers_behind_a_trusted_proxy_are_told_apart() -> None:
    door = Door()
    for _ in range(6):
        door.knock(WRONG, "10.0.0.1", HERE)
    assert door.knock(RIGHT, "10.0.0.1", HERE) == (429, "1")
    assert door.knock(RIGHT, "10.0.0.1", THERE) is None
