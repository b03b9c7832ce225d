"""System checks of workers: clocks in order, more threads than runs."""

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from executions.worker.checks import CLOCKS_OUT_OF_ORDER, NO_THREAD_TO_SPARE


def found(wanted: str) -> list[str]:
    return [str(message.msg) for message in run_checks() if message.id == wanted]


def test_the_clocks_of_the_settings_are_in_order() -> None:
    assert found(CLOCKS_OUT_OF_ORDER) == []


@pytest.mark.parametrize("seconds", [1, 10, 15])
def test_a_lease_that_lapses_before_a_worker_has_stopped_itself_is_an_error(
    settings: Settings, seconds: int
) -> None:
    settings.LEASE_SECONDS = seconds
    messages = found(CLOCKS_OUT_OF_ORDER)
    assert any("self_fence (10 s) must be less than lease" in text for text in messages) == (
        seconds <= 10
    )


@pytest.mark.parametrize(("capacity", "threads"), [(1, 2), (4, 6), (5, 6)])
def test_fewer_runs_than_threads_pass(settings: Settings, capacity: int, threads: int) -> None:
    settings.WORKER_CAPACITY, settings.CELERY_WORKER_CONCURRENCY = capacity, threads
    assert found(NO_THREAD_TO_SPARE) == []


@pytest.mark.parametrize(("capacity", "threads"), [(0, 2), (2, 2), (6, 2)])
def test_anything_else_is_an_error(settings: Settings, capacity: int, threads: int) -> None:
    settings.WORKER_CAPACITY, settings.CELERY_WORKER_CONCURRENCY = capacity, threads
    (message,) = found(NO_THREAD_TO_SPARE)
    assert f"WORKER_CAPACITY is {capacity}" in message
