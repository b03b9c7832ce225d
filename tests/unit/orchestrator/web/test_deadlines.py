"""Each phase of a connection has its time."""

import pytest

from orchestrator.web.connections import ClientConnection, Phase
from orchestrator.web.deadlines import overdue
from orchestrator.web.traffic import Traffic
from tests.unit.orchestrator.web.peers import Clock, FakePeer, limits

LIMITS = limits()


def connection(phase: Phase, **given: float) -> ClientConnection:
    found = FakePeer(Traffic(LIMITS, Clock())).connection
    found.phase, found.since, found.progress = phase, 0, 0
    for name, value in given.items():
        setattr(found, name, value)
    return found


@pytest.mark.parametrize(
    ("one", "last"),
    [
        (connection(Phase.HEADER), LIMITS.header_seconds),
        (connection(Phase.BODY, body=10**6), LIMITS.body_seconds),
        (connection(Phase.BODY), LIMITS.body_first_seconds),
        (connection(Phase.BODY, body=10 * 1_024), 10),  # the rate
        (connection(Phase.QUEUED), LIMITS.queue_seconds),
        (connection(Phase.UNREAD), LIMITS.stalled_seconds),
        (connection(Phase.UNREAD, progress=10**6), LIMITS.answer_seconds),
        (connection(Phase.STREAM, unread=1), LIMITS.stalled_seconds),
        (connection(Phase.AT_WORK, unread=1), LIMITS.stalled_seconds),
        (connection(Phase.IDLE), LIMITS.idle_seconds),
        (connection(Phase.CLOSING), LIMITS.closing_seconds),
    ],
)
def test_until_then_and_no_longer(one: ClientConnection, last: float) -> None:
    assert not overdue(one, last, LIMITS)
    assert overdue(one, last + 0.1, LIMITS)


@pytest.mark.parametrize("phase", [Phase.AT_WORK, Phase.STREAM])
def test_the_application_takes_the_time_it_needs(phase: Phase) -> None:
    assert not overdue(connection(phase), 10**6, LIMITS)
