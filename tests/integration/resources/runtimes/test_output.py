"""isolane.pipes and isolane.descriptors in real runners: what is written past Python's streams."""

import time

import pytest

from isolane.protocol import Log
from isolane.session import LINES_MAX
from resources.runtimes.supervision import DROPPED, LOG_LINES
from tests.integration.resources.runtimes.conftest import Driver, Start, is_gone


def said(driver: Driver) -> list[tuple[str, str]]:
    """Return the log lines since the last call."""
    lines: list[tuple[str, str]]
    lines = [(frame.level, frame.message) for frame in driver.frames if isinstance(frame, Log)]
    driver.frames.clear()
    return lines


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
    for _ in range(5):
        assert driver.output("test.add", {"a": 1}) == 2
    assert time.monotonic() - began < 20
    assert runtime.close(10) == ("a process was left running",)
    assert is_gone(runtime.pid)


def test_what_is_written_between_steps_is_dropped(start: Start) -> None:
    first = start()
    Driver(first).output("restless.write_on_close")
    first.close(5)
    runtime = start(execution_id="e2")
    second = Driver(runtime)
    second.output("test.say", {"lines": 1})
    assert runtime.pid == first.pid
    assert said(second) == [("info", "x")]


def test_what_a_forked_process_writes_is_logged(driver: Driver) -> None:
    assert driver.output("restless.write_from_fork") == 0
    expected = [("warning", "raw"), ("warning", "printed"), ("warning", "logged")]
    assert said(driver) == [*expected, ("info", "begun, ")]


def test_descriptors_are_set_back_for_the_next_run(start: Start) -> None:
    first = start()
    before = Driver(first).output("restless.look_at_descriptors")
    Driver(first).output("restless.close_descriptors")
    assert first.close(5) == ()
    runtime = start(execution_id="e2")
    second = Driver(runtime)
    assert runtime.pid == first.pid
    assert second.output("restless.look_at_descriptors") == before
    assert before[0] == ["/dev/null", True]
    assert said(second) == [("info", "out"), ("warning", "error")]


def test_a_runner_whose_descriptors_cannot_be_set_back_is_ended(start: Start) -> None:
    first = start()
    Driver(first).output("restless.close_descriptors", {"copies": True})
    assert first.close(5) == ("the standard descriptors cannot be restored",)
    assert is_gone(first.pid)
    other = Driver(start("globex"))
    assert other.output("restless.look_at_descriptors")[0] == ["/dev/null", True]
    assert said(other) == [("info", "out"), ("warning", "error")]
