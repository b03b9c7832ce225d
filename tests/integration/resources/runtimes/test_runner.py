"""isolane.runner, forked by a bare zygote: without packages of others, and without its worker."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from isolane.protocol import (
    Cancel,
    Close,
    Closed,
    Describe,
    Frame,
    Keepalive,
    NodeCatalogue,
    Open,
    Ready,
)
from isolane.results import StepResult
from isolane.runner import EXIT_PACKAGE
from isolane.session import EXIT_PROTOCOL
from isolane.stream import Stream, StreamClosedError
from tests.integration.isolane.bare_zygote import ROOT, BareRunner, bare_zygote
from tests.integration.resources.runtimes.conftest import a_run, is_gone, wait_until

OPEN = Open(execution_id="e1", tenant_id="acme", user_id="ada", request_id="r1", epoch=1)
TESTS = ("--path", ROOT, "--package", "tests.nodes")

Spawn = Callable[..., BareRunner]


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    """Fork bare runners that are gone after the test."""
    with contextlib.ExitStack() as stack:

        def spawn_one(*arguments: str) -> BareRunner:
            zygote = stack.enter_context(bare_zygote(*arguments))
            assert "versions" in zygote.hello()
            return stack.enter_context(contextlib.closing(zygote.fork(tmp_path)))

        yield spawn_one


def refusal(*arguments: str) -> str:
    """Return why a zygote does not start."""
    with bare_zygote(*arguments) as zygote:
        error = zygote.hello()["error"]
        assert isinstance(error, str)
        assert zygote.process.wait(10) == EXIT_PACKAGE
        return error


def talk(stream: Stream, *frames: Frame) -> list[Frame]:
    """Send frames and return all answers until one that is no READY, or the stream's end."""
    for frame in frames:
        stream.send(frame)
    answers: list[Frame] = []
    with contextlib.suppress(StreamClosedError):
        while not answers or isinstance(answers[-1], Ready):
            answers.append(stream.receive(10))
    return answers


def test_it_needs_nothing_but_the_standard_library(spawn: Spawn) -> None:
    stream = spawn().stream
    (catalogue,) = talk(stream, Describe())
    assert isinstance(catalogue, NodeCatalogue)
    assert [node.name for node in catalogue.nodes] == [
        "cache.delete", "cache.get", "cache.set", "data.map", "data.set", "flow.sleep", "http.request",
        "human.approval", "llm.chat", "resources.check", "sql.query",
    ]  # fmt: skip
    run = a_run("data.map", {"values": {"a": 1}})
    ready, result = talk(stream, OPEN, Keepalive(), run)
    assert ready == Ready()
    assert result == StepResult.succeeded(step="pay", attempt=0, output={"a": 1})
    assert talk(stream, Close()) == [Closed(errors=())]


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param([a_run("data.map")], id="run without open"),
        pytest.param([OPEN, OPEN], id="open twice"),
        pytest.param([Close()], id="close without open"),
        pytest.param([Ready()], id="a frame of its own"),
    ],
)
def test_frames_out_of_order_end_it(spawn: Spawn, frames: list[Frame]) -> None:
    runner = spawn()
    talk(runner.stream, *frames)
    assert runner.wait() == EXIT_PROTOCOL


def test_garbage_ends_it(spawn: Spawn) -> None:
    runner = spawn()
    runner.stream._channel.send(b"\xff" * 6)
    assert runner.wait() == EXIT_PROTOCOL


def test_a_cancellation_without_execution_means_nothing(spawn: Spawn) -> None:
    stream = spawn().stream
    assert talk(stream, Cancel(), OPEN, Close()) == [Ready(), Closed(errors=())]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("\n\nimport nowhere", "3: ModuleNotFoundError: No module named 'nowhere'"),
        ("raise ValueError('two\\nlines')", "1: ValueError: two lines"),
        ("raise SystemExit(0)", "1: SystemExit: 0"),
        ("\nx = (", "2: SyntaxError: '(' was never closed (broken.py, line 2)"),
        (
            "from isolane import node\n@node('bad.x')\ndef bad(ctx, *, y): ...",
            "2: TypeError: node bad.x, parameter y: needs a type annotation",
        ),
    ],
)
def test_a_broken_package_ends_it_with_one_line(tmp_path: Path, source: str, reason: str) -> None:
    (tmp_path / "broken.py").write_text(source)
    place = f"…/{tmp_path.name}/broken.py"
    error = refusal("--path", str(tmp_path), "--package", "broken")
    assert error == f"package broken cannot be imported: {place}:{reason}"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("plugged:missing", "AttributeError: module 'plugged' has no attribute 'missing'"),
        ("leaving", "…/{folder}/leaving.py:1: SystemExit: 1"),
    ],
)
def test_a_broken_entry_point_ends_it_with_one_line(
    tmp_path: Path, value: str, reason: str
) -> None:
    install(tmp_path, value)
    (tmp_path / "leaving.py").write_text("raise SystemExit(1)")
    named = f"entry point plug = {value} cannot be imported: {reason}"
    assert refusal("--path", str(tmp_path)) == named.format(folder=tmp_path.name)


@pytest.mark.parametrize("value", ["plugged", "plugged:plug"])
def test_entry_points_are_loaded_with_the_version_of_what_they_came_with(
    spawn: Spawn, tmp_path: Path, value: str
) -> None:
    install(tmp_path, value)
    stream = spawn("--path", str(tmp_path)).stream
    (catalogue,) = talk(stream, Describe())
    assert isinstance(catalogue, NodeCatalogue)
    assert "plug.in" in [node.name for node in catalogue.nodes]
    assert catalogue.packages["acme-plugged"] == "4.2"


def install(folder: Path, value: str) -> None:
    """Put a distribution with an entry point into a folder, as pip would."""
    (folder / "plugged.py").write_text(
        "from isolane import NodeContext, node\n"
        "@node('plug.in')\n"
        "def plug(ctx: NodeContext) -> None: ...\n"
    )
    info = folder / "acme_plugged-4.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-plugged\nVersion: 4.2\n")
    (info / "entry_points.txt").write_text(f"[isolane.nodes]\nplug = {value}\n")


def test_a_package_that_is_imported_after_the_fork_is_told_like_any_other(
    spawn: Spawn, tmp_path: Path
) -> None:
    install(tmp_path, "plugged")
    runner = spawn("--path", str(tmp_path), "--package", "plugged", "--late", "package plugged")
    (catalogue,) = talk(runner.stream, Describe())
    assert isinstance(catalogue, NodeCatalogue)
    assert "plug.in" in [node.name for node in catalogue.nodes]


def test_one_that_cannot_be_imported_then_ends_the_runner_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import nowhere")
    late = ("--path", str(tmp_path), "--package", "broken", "--late", "package broken")
    with bare_zygote(*late) as zygote:
        assert "versions" in zygote.hello()
        runner = zygote.fork(tmp_path)
        assert runner.wait() == EXIT_PACKAGE
        runner.close()
        zygote.process.kill()
        assert zygote.process.stderr is not None
        said = zygote.process.stderr.read()
    assert said.startswith("isolane.runner: package broken cannot be imported: ")
    assert said.count("\n") == 1


def test_it_ends_with_its_worker_although_a_step_blocks(spawn: Spawn, tmp_path: Path) -> None:
    pid_file = tmp_path / "pids"
    runner = spawn(*TESTS)
    runner.stream.send(OPEN)
    runner.stream.send(a_run("test.sleep", {"seconds": 60, "pid_file": str(pid_file)}))
    wait_until(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
    own, grandchild = map(int, pid_file.read_text().split())
    assert own == runner.pid
    runner.stream.close()
    wait_until(runner.ended, timeout=2)
    wait_until(lambda: is_gone(grandchild), timeout=2)


def test_a_process_that_left_its_session_ends_with_the_worker(spawn: Spawn, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    runner = spawn(*TESTS)
    runner.stream.send(OPEN)
    runner.stream.send(a_run("test.daemonize", {"pid_file": str(pid_file), "seconds": 60}))
    wait_until(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
    runner.stream.close()
    wait_until(runner.ended, timeout=2)
    wait_until(lambda: is_gone(int(pid_file.read_text())), timeout=2)


def test_a_process_that_left_its_session_is_ended_by_the_runner_itself(
    spawn: Spawn, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    runner = spawn(*TESTS)
    _, result = talk(runner.stream, OPEN, a_run("test.daemonize", {"pid_file": str(pid_file)}))
    assert isinstance(result, StepResult)
    assert result.status == "succeeded"
    assert talk(runner.stream, Close()) == [Closed(errors=("a process was left running",))]
    assert is_gone(int(pid_file.read_text()))
    assert not runner.ended()
