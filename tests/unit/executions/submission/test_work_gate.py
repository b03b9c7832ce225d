"""executions.submission.work_gate: one check of each tenant, a few in all, and everybody has a turn."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from executions.submission.work_gate import WAITING, WorkGate
from foundation.errors import TooManyChecks
from tests.waiting import wait_for


@pytest.fixture
def gate() -> WorkGate:
    return WorkGate(places=2, wait_s=0.05)


class Waiting:
    """Threads that wait for a place, and in which order they got one."""

    def __init__(self, gate: WorkGate) -> None:
        self.gate = gate
        self.order: list[str] = []
        self._threads: list[threading.Thread] = []

    def add(self, tenant: str) -> None:
        """Let one more wait."""
        before = self._waiting()
        thread = threading.Thread(target=self._enter, args=(tenant,))
        thread.start()
        self._threads.append(thread)
        wait_for(lambda: self._waiting() > before, "a thread to wait")

    def join(self) -> None:
        for thread in self._threads:
            thread.join(10)

    def _waiting(self) -> int:
        return sum(map(len, self.gate._waiting.values()))

    def _enter(self, tenant: str) -> None:
        with self.gate.place(tenant):
            self.order.append(tenant)


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    made = Waiting(WorkGate(places=2, wait_s=10))
    yield made
    made.join()


def refused(gate: WorkGate, tenant: str) -> TooManyChecks:
    with pytest.raises(TooManyChecks) as raised, gate.place(tenant):
        pass
    return raised.value


def test_few_of_a_tenant_wait_and_the_next_is_refused_at_once(waiting: Waiting) -> None:
    with waiting.gate.place("acme"):
        for _ in range(WAITING):
            waiting.add("acme")
        refused(waiting.gate, "acme")  # would wait for ten seconds otherwise
        with waiting.gate.place("globex"):
            pass


def test_a_tenant_has_one_place_and_leaves_the_others(gate: WorkGate) -> None:
    with gate.place("acme"):
        error = refused(gate, "acme")
        with gate.place("globex"):
            refused(gate, "initech")
    assert (error.http_status, error.code, error.retryable) == (429, "too_many_checks", True)
    with gate.place("acme"), gate.place("initech"):
        pass


def test_who_gave_up_waits_no_more_and_a_failure_frees_the_place(gate: WorkGate) -> None:
    with pytest.raises(ZeroDivisionError), gate.place("acme"):
        refused(gate, "acme")
        raise ZeroDivisionError
    assert not gate._waiting
    with gate.place("acme"):
        pass


def test_turns_go_from_tenant_to_tenant(waiting: Waiting) -> None:
    with ExitStack() as held:
        held.enter_context(waiting.gate.place("x"))
        with waiting.gate.place("y"):
            for tenant in ("acme", "acme", "globex"):
                waiting.add(tenant)
        wait_for(lambda: len(waiting.order) == 3, "all to have had their turn")
    assert waiting.order.index("globex") == 1
