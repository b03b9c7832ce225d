"""isolane.pipes at every level: what is written past Python's streams."""

import time

import pytest

from isolane.session import LINES_MAX
from resources.runtimes.supervision import DROPPED, LOG_LINES
from tests.integration.resources.runtimes.conftest import Driver, said
from tests.integration.resources.runtimes.contract.conftest import Start


def test_what_is_written_to_descriptors_is_logged_in_order(driver: Driver) -> None:
    driver.output("restless.write")
    expected = [
        line
        for turn in range(3)
        for line in (
            ("info", f"raw {turn}"),
            ("info", f"printed {turn}"),
            ("info", f"program {turn}"),
            ("info", f"context {turn}"),
            ("warning", f"error {turn}"),
            ("error", f"logged {turn}"),
        )
    ]
    assert said(driver) == [*expected, ("info", "\ufffdä\ufffd, \ufffd")]


@pytest.mark.parametrize("by", ["program", "step"])
def test_more_than_a_pipe_holds_is_cut_like_all_output(driver: Driver, by: str) -> None:
    assert driver.output("restless.flood", {"count": 1_000_000, "by": by}) == "done"
    lines = said(driver)
    assert LOG_LINES < LINES_MAX  # or lines were missing without a word
    assert len(lines) <= LOG_LINES + 1
    assert lines[-1] == ("warning", DROPPED)
    assert driver.output("test.add", {"a": 1}) == 2
    assert said(driver) == []


def test_a_program_that_goes_on_writing_keeps_nobody_waiting(start: Start) -> None:
    runtime = start()
    driver = Driver(runtime)
    driver.output("restless.leave_writer")
    began = time.monotonic()
    for _ in range(2):
        assert driver.output("test.add", {"a": 1}) == 2
    assert time.monotonic() - began < 20
    runtime.close(10)
    assert not runtime.alive


def test_what_a_forked_process_writes_is_logged(driver: Driver) -> None:
    assert driver.output("restless.write_from_fork") == 0
    expected = [("warning", "raw"), ("warning", "printed"), ("warning", "logged")]
    assert said(driver) == [*expected, ("info", "begun, ")]
