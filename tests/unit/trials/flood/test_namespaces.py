"""trials.flood.namespaces: who keeps a namespace is told from who uses its number again."""

import pytest

from trials.flood.namespaces import Keeper, left

MACHINE, NOTED, OTHER = "mnt:[1]", "mnt:[2]", "mnt:[3]"
WORKER, STRANGER, SECOND = 7, 8, 9


def kept(*found: Keeper) -> list[Keeper]:
    return left(found, machine={MACHINE}, noted={NOTED}, trial={WORKER})


@pytest.mark.parametrize(
    "keeper",
    [
        Keeper(STRANGER, NOTED, "fd/5"),
        Keeper(WORKER, NOTED, "fd/5"),
        Keeper(WORKER, OTHER, "fd/5"),  # of a sandbox that was not seen
        Keeper(WORKER, NOTED, "ns/mnt"),
        Keeper(WORKER, OTHER, "task/12/ns/mnt"),
        Keeper(WORKER, OTHER, "ns/user", has_ended=True),
    ],
)
def test_what_keeps_a_namespace_of_a_sandbox_is_found(keeper: Keeper) -> None:
    assert kept(Keeper(WORKER, MACHINE, "ns/mnt"), keeper) == [keeper]


@pytest.mark.parametrize(
    "keeper",
    [
        Keeper(STRANGER, OTHER, "fd/5"),
        Keeper(STRANGER, OTHER, "ns/mnt"),
        Keeper(STRANGER, NOTED, "ns/mnt"),  # no sandbox has strangers in it
        Keeper(STRANGER, NOTED, "ns/mnt", has_ended=True),
        Keeper(WORKER, MACHINE, "fd/5"),
        Keeper(STRANGER, MACHINE, "fd/5"),
    ],
)
def test_namespaces_of_the_machine_and_of_other_programs_are_not(keeper: Keeper) -> None:
    assert kept(keeper) == []


def test_a_number_that_another_program_has_now_is_its_own() -> None:
    inside = Keeper(SECOND, NOTED, "task/9/ns/mnt")
    assert kept(inside, Keeper(STRANGER, NOTED, "fd/5")) == []
    assert kept(inside, of_trial := Keeper(WORKER, NOTED, "fd/5")) == [of_trial]


def test_a_zombie_is_no_other_program() -> None:
    holder = Keeper(STRANGER, NOTED, "fd/5")
    assert kept(Keeper(SECOND, NOTED, "ns/mnt", has_ended=True), holder) == [holder]
