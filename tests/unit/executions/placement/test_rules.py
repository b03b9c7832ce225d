"""executions.placement.rules: runs and their workers, decided from a snapshot alone."""

from collections import Counter
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from executions.placement.rules import (
    FreeWorker,
    PlacementDecision,
    Snapshot,
    WaitingTicket,
    decide,
)


def ticket(
    number: int, *, tenant: int = 1, isolation: str = "shared", catalogue: str = "c1"
) -> WaitingTicket:
    return WaitingTicket(
        execution_id=UUID(int=number), tenant_id=tenant, isolation=isolation, catalogue=catalogue
    )


def worker(
    number: int, *, free: int = 9, levels: tuple[str, ...] = ("shared",), catalogue: str = "c1"
) -> FreeWorker:
    return FreeWorker(
        boot=UUID(int=number),
        node_name=f"w{number}@test",
        lane=f"lane.{number}",
        free=free,
        catalogue=catalogue,
        isolation_levels=frozenset(levels),
    )


def placed(
    waiting: list[WaitingTicket], workers: list[FreeWorker], quotas: dict[int, int]
) -> list[tuple[int, int]]:
    """The decisions as pairs of ticket and worker number."""
    decisions = decide(Snapshot(waiting=waiting, workers=workers, free_by_tenant=quotas))
    return [(found.execution_id.int, found.boot.int) for found in decisions]


def test_in_the_order_of_waiting_up_to_each_tenants_quota() -> None:
    waiting = [ticket(1), ticket(2), ticket(3, tenant=2), ticket(4)]
    assert placed(waiting, [worker(1)], {1: 2, 2: 5}) == [(1, 1), (2, 1), (3, 1)]


def test_a_tenant_without_quota_gets_nothing() -> None:
    assert placed([ticket(1), ticket(2, tenant=2)], [worker(1)], {1: 0}) == []


def test_up_to_the_workers_capacity() -> None:
    waiting = [ticket(1), ticket(2), ticket(3)]
    assert placed(waiting, [worker(1, free=2)], {1: 9}) == [(1, 1), (2, 1)]


def test_only_where_the_catalogue_is_present() -> None:
    waiting = [ticket(1, catalogue="c2"), ticket(2)]
    assert placed(waiting, [worker(1)], {1: 9}) == [(2, 1)]


def test_only_where_the_isolation_is_offered() -> None:
    waiting = [ticket(1, isolation="docker"), ticket(2)]
    workers = [worker(1), worker(2, free=1, levels=("shared", "docker"))]
    assert placed(waiting, workers, {1: 9}) == [(1, 2), (2, 1)]


def test_the_emptiest_worker_comes_first() -> None:
    waiting = [ticket(number) for number in range(1, 5)]
    workers = [worker(1, free=2), worker(2, free=3)]
    assert Counter(boot for _, boot in placed(waiting, workers, {1: 9})) == {1: 2, 2: 2}


def test_the_decision_names_the_lane() -> None:
    snapshot = Snapshot(waiting=[ticket(1)], workers=[worker(2)], free_by_tenant={1: 1})
    assert decide(snapshot) == [
        PlacementDecision(
            execution_id=UUID(int=1), boot=UUID(int=2), worker="w2@test", lane="lane.2"
        )
    ]


LEVELS = st.sampled_from(["shared", "process"])
CATALOGUES = st.sampled_from(["c1", "c2"])
WAITING = st.lists(
    st.builds(
        WaitingTicket,
        execution_id=st.uuids(),
        tenant_id=st.integers(1, 3),
        isolation=LEVELS,
        catalogue=CATALOGUES,
    ),
    unique_by=lambda found: found.execution_id,
    max_size=12,
)
WORKERS = st.lists(
    st.builds(
        FreeWorker,
        boot=st.uuids(),
        node_name=st.just("w@test"),
        lane=st.just("lane"),
        free=st.integers(0, 3),
        catalogue=CATALOGUES,
        isolation_levels=st.frozensets(LEVELS),
    ),
    unique_by=lambda found: found.boot,
    max_size=4,
)
QUOTAS = st.dictionaries(st.integers(1, 3), st.integers(-1, 4))


def fits(waiting: WaitingTicket, host: FreeWorker) -> bool:
    return waiting.catalogue == host.catalogue and waiting.isolation in host.isolation_levels


@given(WAITING, WORKERS, QUOTAS)
def test_no_limit_is_exceeded_and_no_slot_is_left_to_somebody_who_fits(
    waiting: list[WaitingTicket], workers: list[FreeWorker], quotas: dict[int, int]
) -> None:
    decisions = decide(Snapshot(waiting=waiting, workers=workers, free_by_tenant=quotas))
    tickets = {found.execution_id: found for found in waiting}
    hosts = {host.boot: host for host in workers}
    taken = Counter(found.boot for found in decisions)
    used = Counter(tickets[found.execution_id].tenant_id for found in decisions)
    left = [
        found for found in waiting if found.execution_id not in {d.execution_id for d in decisions}
    ]

    assert len({found.execution_id for found in decisions}) == len(decisions)
    assert all(fits(tickets[found.execution_id], hosts[found.boot]) for found in decisions)
    assert all(count <= hosts[boot].free for boot, count in taken.items())
    assert all(count <= quotas.get(tenant, 0) for tenant, count in used.items())
    assert not [
        found
        for found in left
        if used[found.tenant_id] < quotas.get(found.tenant_id, 0)
        and any(fits(found, host) and taken[host.boot] < host.free for host in workers)
    ]
