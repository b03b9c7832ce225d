"""Parts of the chaos trial that can be tested alone: clocks, task events, outages and the timeline."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from trials.chaos.listener import TaskEventListener, link_of
from trials.chaos.servers import Server
from trials.chaos.timeline import Timeline
from trials.chaos.worker import set_clock

RUN = UUID(int=1)


def test_a_worker_sees_another_time_and_the_same_durations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", time.time)  # put back at the end
    monkeypatch.setattr(timezone, "now", timezone.now)
    before, lasting = time.time(), time.monotonic()
    set_clock(-1800.0)
    assert time.time() == pytest.approx(before - 1800, abs=5)
    assert (datetime.now(UTC) - timezone.now()).total_seconds() == pytest.approx(1800, abs=5)
    assert time.monotonic() - lasting < 5


@pytest.mark.parametrize(
    ("shown", "link"),
    [
        (f"(3, '{RUN}', 2, 's07')", (str(RUN), 2, "s07")),
        ("()", None),
        ("", None),
        ("(3, '…", None),
    ],
)
def test_the_link_of_a_task_by_its_arguments(shown: str, link: tuple[str, int, str] | None) -> None:
    assert link_of(shown) == link


def test_tasks_are_counted_by_their_link_and_each_once() -> None:
    listener = TaskEventListener()
    for task, epoch in (("a", 1), ("b", 1), ("c", 2)):
        listener._on_received({"uuid": task, "args": f"(3, '{RUN}', {epoch}, 's01')"})
        listener._on_succeeded({"uuid": task})
    listener._on_succeeded({"uuid": "a"})  # sent again
    listener._on_succeeded({"uuid": "of another task"})
    assert listener.successes() == {(str(RUN), 1, "s01"): 2, (str(RUN), 2, "s01"): 1}


class NoSupervisor:
    """A supervisor that does nothing."""

    pids: dict[str, int] = {}  # noqa: RUF012 - never filled

    def start(self, *_: Any) -> None:
        pass

    def stop_all(self) -> None:
        pass


def test_a_server_knows_when_it_was_down() -> None:
    server = Server(None, NoSupervisor())  # type: ignore[arg-type]  # neither is used
    server.start()
    assert not server.was_down(0.0)
    server.stop()
    assert server.was_down(time.monotonic() + 60)  # and still is
    server.start()
    assert server.was_down(0.0)
    assert not server.was_down(time.monotonic())


def test_a_timeline_counts_the_lines_with_a_name(tmp_path: Path) -> None:
    timeline = Timeline(tmp_path / "timeline.log")
    timeline.note("chaos1@here starts")
    timeline.note("FLUSHALL: done", count="FLUSHALL")
    assert timeline.counts == {"FLUSHALL": 1}
    first, second = (tmp_path / "timeline.log").read_text().splitlines()
    assert first.endswith("chaos1@here starts")
    assert second.endswith("FLUSHALL: done")
