"""isolane.descriptors in real runners: output and standard descriptors of one run, and of the next."""

from tests.integration.resources.runtimes.conftest import Driver, Start, is_gone, said


def test_what_is_written_between_steps_is_dropped(start: Start) -> None:
    first = start()
    Driver(first).output("restless.write_on_close")
    first.close(5)
    runtime = start(execution_id="e2")
    second = Driver(runtime)
    second.output("test.say", {"lines": 1})
    assert runtime.pid == first.pid
    assert said(second) == [("info", "x")]


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
