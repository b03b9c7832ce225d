"""Admission, turns and drops of connections."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.web.connections import Phase
from orchestrator.web.traffic import Traffic
from tests.unit.orchestrator.web.peers import Clock, FakePeer, limits


def traffic(**given: float) -> tuple[Traffic, Clock]:
    clock = Clock()
    return Traffic(limits(**given), clock), clock


# --- full
def test_the_oldest_unfinished_makes_room_and_whole_requests_do_not() -> None:
    shared, _ = traffic(connections=3)
    served = FakePeer(shared).send_whole()
    oldest, younger = FakePeer(shared), FakePeer(shared).send()
    FakePeer(shared)
    assert (served.dropped, oldest.dropped, younger.dropped) == (False, True, False)


def test_many_that_send_nothing_do_not_end_those_who_send_a_body() -> None:
    shared, _ = traffic(connections=4)
    upload = FakePeer(shared).send()
    shared.header_complete(upload.connection)
    crowd = [FakePeer(shared) for _ in range(5)]
    assert [one.dropped for one in (upload, *crowd)] == [False, True, True, False, False, False]


def test_many_that_send_bodies_make_room_themselves() -> None:
    shared, _ = traffic(connections=4)
    crowd = [FakePeer(shared) for _ in range(3)]
    for one in crowd:
        shared.header_complete(one.connection)
    new = FakePeer(shared)
    FakePeer(shared)
    assert [one.dropped for one in (*crowd, new)] == [True, False, False, False]


def test_then_the_longest_idle_and_then_who_does_not_read() -> None:
    shared, _ = traffic(connections=3, at_work=3)
    unread, idle, later = (FakePeer(shared).send_whole() for _ in range(3))
    shared.answered(unread.connection, unread=True)
    shared.answered(idle.connection, unread=False)
    shared.answered(later.connection, unread=False)
    order = []
    for _ in range(3):
        FakePeer(
            shared
        ).send_whole()  # with a request of its own at once, or it would be the next to go
        order.append([one.dropped for one in (idle, later, unread)])
    assert order == [[True, False, False], [True, True, False], [True, True, True]]


def test_who_was_refused_goes_before_all() -> None:
    shared, _ = traffic(connections=2)
    oldest, refused = FakePeer(shared), FakePeer(shared)
    shared.refused(refused.connection)
    FakePeer(shared)
    assert (oldest.dropped, refused.dropped) == (False, True)


def test_a_new_one_is_dropped_where_all_have_whole_requests() -> None:
    shared, _ = traffic(connections=2, at_work=2)
    working = [FakePeer(shared).send_whole() for _ in range(2)]
    assert FakePeer(shared).dropped
    assert not any(one.dropped for one in working)


def test_an_address_has_a_limit_only_if_it_is_set() -> None:
    shared, _ = traffic(connections_per_address=1)
    first, second, other = FakePeer(shared), FakePeer(shared), FakePeer(shared, "b")
    assert (first.dropped, second.dropped, other.dropped) == (False, True, False)
    shared.closed(first.connection)
    assert not FakePeer(shared).dropped


# --- memory
def test_who_sends_most_is_refused_and_nobody_else() -> None:
    shared, _ = traffic(held_bytes=400)
    small, large, larger = FakePeer(shared).send(10), FakePeer(shared).send(150), FakePeer(shared)
    larger.send(240)
    assert larger.refusal is None
    small.send(1)
    refused = [one.refusal and one.refusal.http_status for one in (small, large, larger)]
    assert refused == [None, None, 503]
    assert shared.held == 161


def test_whole_requests_that_hold_too_much_are_told_503() -> None:
    shared, _ = traffic(held_bytes=400, connections=8)
    FakePeer(shared).send_whole()
    queued = [FakePeer(shared).send_whole(130) for _ in range(3)]
    sender = FakePeer(shared).send(20)
    assert [one.refusal and one.refusal.http_status for one in queued] == [None, None, 503]
    assert sender.refusal is None


# --- turns
def test_a_request_waits_for_its_turn_and_the_last_of_a_crowd_is_told_503() -> None:
    shared, _ = traffic(connections=9)
    crowd = [FakePeer(shared, "crowd").send_whole() for _ in range(4)]
    assert [one.begun for one in crowd] == [1, 0, 0, 0]
    single = FakePeer(shared, "single").send_whole()
    assert crowd[-1].refusal is not None
    assert crowd[-1].refusal.code == "unavailable"
    shared.ended("crowd", stream=False)
    shared.ended("crowd", stream=False)
    assert (crowd[1].begun, single.begun, crowd[2].begun) == (1, 1, 0)


def test_one_caller_does_not_have_all_turns_even_if_nobody_else_waits() -> None:
    shared, _ = traffic(connections=9, at_work=3, at_work_per_caller=2)
    crowd = [FakePeer(shared, "crowd").send_whole() for _ in range(3)]
    single = FakePeer(shared, "single").send_whole()
    assert [one.begun for one in (*crowd, single)] == [1, 1, 0, 1]
    shared.ended("single", stream=False)
    assert crowd[2].begun == 0
    shared.ended("crowd", stream=False)
    assert crowd[2].begun == 1


def test_who_leaves_the_queue_is_not_begun() -> None:
    shared, _ = traffic()
    FakePeer(shared).send_whole()
    gone, after = FakePeer(shared).send_whole(), FakePeer(shared).send_whole()
    shared.closed(gone.connection)
    shared.ended("a", stream=False)
    assert (gone.begun, after.begun) == (0, 1)


def test_a_stream_gives_its_turn_to_others_and_is_counted_apart() -> None:
    shared, _ = traffic()
    stream, waiting = FakePeer(shared).send_whole(), FakePeer(shared).send_whole()
    assert shared.became_stream(stream.connection, "a")
    assert waiting.begun == 1
    assert not shared.became_stream(waiting.connection, "a")
    shared.ended("a", stream=True)
    assert (shared.streams, shared.at_work) == (0, 1)


# --- time
def test_an_unfinished_request_is_told_408_and_a_silent_connection_is_closed() -> None:
    shared, clock = traffic()
    silent, begun = FakePeer(shared), FakePeer(shared).send()
    clock.now += 10.1
    shared.sweep()
    assert silent.dropped
    assert begun.refusal is not None
    assert begun.refusal.http_status == 408


def test_an_answer_that_is_taken_slowly_goes_on_and_one_that_is_not_taken_ends() -> None:
    shared, clock = traffic(at_work=2)
    slow, stuck = FakePeer(shared).send_whole(), FakePeer(shared).send_whole()
    for peer in (slow, stuck):
        peer.unread = 1_000
        shared.answered(peer.connection, unread=True)
    shared.sweep()
    for _ in range(2):
        clock.now += 9
        slow.unread -= 1
        shared.sweep()
    assert (slow.dropped, stuck.dropped) == (False, True)


def test_answers_that_nobody_takes_are_bounded_together() -> None:
    shared, _ = traffic(at_work=3, unread_bytes=250)
    peers = [FakePeer(shared).send_whole() for _ in range(3)]
    for peer in peers:
        peer.unread = 100
        shared.answered(peer.connection, unread=True)
    shared.sweep()
    assert [peer.dropped for peer in peers] == [True, False, False]


def test_a_sweep_says_once_what_it_ended(caplog: pytest.LogCaptureFixture) -> None:
    shared, clock = traffic()
    for _ in range(4):
        FakePeer(shared).send()
    clock.now += 60
    with caplog.at_level("INFO"):
        shared.sweep()
    assert [line.getMessage() for line in caplog.records] == ["connections were overdue: 4 header"]


# --- whatever comes
Act = Callable[[Traffic, Clock, list[FakePeer]], None]


def _of(peers: list[FakePeer], phase: Phase) -> FakePeer | None:
    return next((one for one in peers if not one.dropped and one.connection.phase is phase), None)


def open_one(shared: Traffic, clock: Clock, peers: list[FakePeer]) -> None:
    peers.append(FakePeer(shared, address="ab"[len(peers) % 2]))


def send_part(shared: Traffic, clock: Clock, peers: list[FakePeer]) -> None:
    if peer := _of(peers, Phase.HEADER):
        peer.send(150)


def send_all(shared: Traffic, clock: Clock, peers: list[FakePeer]) -> None:
    if peer := _of(peers, Phase.HEADER):
        peer.send(50)
        if peer.connection.phase is Phase.HEADER and not peer.dropped:
            shared.whole(peer.connection)


def answer(shared: Traffic, clock: Clock, peers: list[FakePeer]) -> None:
    if peer := _of(peers, Phase.AT_WORK):
        shared.answered(peer.connection, unread=len(peers) % 3 == 0)
        shared.ended(peer.connection.caller, stream=False)


def leave(shared: Traffic, clock: Clock, peers: list[FakePeer]) -> None:
    if peer := _of(peers, Phase.QUEUED):
        shared.closed(peer.connection)
        peers.remove(peer)


def wait(shared: Traffic, clock: Clock, peers: list[FakePeer]) -> None:
    clock.now += 3
    shared.sweep()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([open_one, send_part, send_all, answer, leave, wait]), max_size=60))
def test_the_books_are_right_whatever_comes(acts: list[Act]) -> None:
    clock = Clock()
    shared = Traffic(limits(held_bytes=400, queued=2), clock)
    peers: list[FakePeer] = []
    for act in acts:
        act(shared, clock, peers)
        present = list(shared.connections)
        assert len(present) == len(shared.connections) <= shared.limits.connections
        assert shared.held == sum(one.held for one in present) <= shared.limits.held_bytes
        at_work = sum(one.phase is Phase.AT_WORK for one in present)
        assert at_work == shared.at_work <= shared.limits.at_work
        queued = {one for one in present if one.phase is Phase.QUEUED}
        assert queued == set(shared.queue)
        assert len(queued) <= shared.limits.queued
        assert not queued or at_work == shared.limits.at_work
        assert not any(
            one.dropped and one.connection.phase in {Phase.QUEUED, Phase.AT_WORK} for one in peers
        )
