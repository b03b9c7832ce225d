"""resources.runtimes.outside_users: the users of sandboxes outside of them."""

import pytest

from resources.runtimes.base import RuntimeStartError
from resources.runtimes.outside_users import user_of, users_for_sandboxes

MACHINE = "         0          0 4294967295\n"
CONTAINER = "         0     100000      65536\n"
ROOTLESS = (
    "         0       1000          1\n         1     100000      65536\n"  # of Podman and Docker
)


def test_on_a_machine_they_are_far_from_its_accounts() -> None:
    users = users_for_sandboxes(MACHINE, MACHINE, accounts={0, 1000})
    assert (users.start, users.stop) == (0x40000000, 0x44000000)


@pytest.mark.parametrize("text", [CONTAINER, ROOTLESS])
def test_in_a_container_they_are_of_its_own(text: str) -> None:
    users = users_for_sandboxes(text, text, accounts={0, 1, 33, 1000, 1001})
    assert (users.start, users.stop) == (1002, 65534)  # up to nobody


def test_they_are_the_widest_gap_between_accounts() -> None:
    users = users_for_sandboxes(CONTAINER, CONTAINER, accounts={2000, 50_000, 60_000})
    assert (users.start, users.stop) == (2001, 50_000)


def test_they_are_groups_as_well() -> None:
    groups = "0 100000 1000\n1000 300000 20000\n"
    users = users_for_sandboxes(CONTAINER, groups, accounts=())
    assert (users.start, users.stop) == (1000, 21000)


def test_each_slot_of_a_worker_has_its_own() -> None:
    users = users_for_sandboxes(CONTAINER, CONTAINER, accounts={0})
    found = {
        user_of(users, worker=worker, slot=slot) for worker in range(7, 107) for slot in (0, 255)
    }
    assert len(found) == 200
    assert all(each in users for each in found)


@pytest.mark.parametrize("worker", [1, 252, 4_194_304])
def test_any_worker_and_slot_has_one(worker: int) -> None:
    for text in (MACHINE, CONTAINER, "0 100000 1256"):
        users = users_for_sandboxes(text, text, accounts=())
        assert all(
            user_of(users, worker=worker, slot=slot) in users for slot in (0, 255, 256, 9999)
        )


@pytest.mark.parametrize("text", ["0 1000 1\n", "0 100000 1200\n", ""])
def test_too_few_are_an_error_that_says_so(text: str) -> None:
    with pytest.raises(RuntimeStartError, match="Map 65536 users and groups"):
        users_for_sandboxes(text, text, accounts=())
    with pytest.raises(RuntimeStartError, match="no users for sandboxes"):
        users_for_sandboxes(CONTAINER, text, accounts=())


def test_accounts_without_a_gap_between_them_are_never_taken() -> None:
    with pytest.raises(RuntimeStartError, match="has 200 in a row"):
        users_for_sandboxes(CONTAINER, CONTAINER, accounts=range(1000, 65536, 201))
