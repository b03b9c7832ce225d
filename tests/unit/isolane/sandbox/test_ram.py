"""isolane.sandbox.ram: the memory that a run is charged for."""

import mmap
import os

from isolane.sandbox.ram import ProcessRam, charged_kb, inherited_kb

ZYGOTE = 300  # that all runners of a zygote share


def test_memory_of_one_process_is_charged() -> None:
    assert charged_kb([ProcessRam(private=80, shares=80)], inherited_kb=0) == 80
    assert charged_kb([ProcessRam(private=80, shares=180)], inherited_kb=ZYGOTE) == 80


def test_memory_that_a_fork_shares_is_charged_once() -> None:
    pair = [ProcessRam(shares=40), ProcessRam(shares=40)]
    assert charged_kb(pair, inherited_kb=0) == 80
    assert charged_kb(pair * 10, inherited_kb=0) == 800


def test_what_was_inherited_is_free_for_any_number_of_processes() -> None:
    for processes in (1, 4, 100):
        share = ZYGOTE * processes // (processes + 2) // processes  # the zygote and the guard, too
        runs = [ProcessRam(private=1, shares=share + 1)] * processes
        assert charged_kb(runs, inherited_kb=ZYGOTE) == processes


def test_one_that_drops_what_it_inherited_gains_no_more_than_that() -> None:
    pair = [ProcessRam(shares=500), ProcessRam(shares=500)]
    assert charged_kb(pair, inherited_kb=ZYGOTE) == 1000 - ZYGOTE
    alone = [ProcessRam(private=1000, shares=1000)]
    assert charged_kb(alone, inherited_kb=ZYGOTE) == 1000


def test_shared_files_and_huge_pages_are_always_charged() -> None:
    assert charged_kb([ProcessRam(beside=7), ProcessRam(beside=5)], inherited_kb=ZYGOTE) == 12


def test_a_fork_inherits_the_anonymous_memory_of_its_parent() -> None:
    before = inherited_kb()
    with mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
        area.write(os.urandom(8 << 20))
        assert inherited_kb() - before >= 8 << 10
