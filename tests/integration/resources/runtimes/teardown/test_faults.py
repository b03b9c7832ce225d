"""Every call that close, wipe and sweep make fails once, in turn: nothing of a runtime stays."""

import contextlib
import os
from collections.abc import Callable

from resources.runtimes.base import Runtime
from resources.runtimes.folder import PREFIX
from resources.runtimes.shared import SharedRuntime
from tests.debris import bush, fill
from tests.integration.resources.runtimes.conftest import wait_until
from tests.integration.resources.runtimes.teardown.calls import ERRORS, Call, failing, recorded
from tests.integration.resources.runtimes.teardown.pool import FEW, PLACEMENT, Pool
from tests.placements import ACME

Act = Callable[[], object]


def ends_well(pool: Pool) -> Act:
    """The runner is emptied and kept."""
    runtime = pool.start()
    bush(pool.folder_of(runtime))
    pool.will_answer()
    return lambda: closed(runtime)


def leaves_much(pool: Pool) -> Act:
    """So much that another process empties its folder."""
    runtime = pool.start()
    fill(pool.folder_of(runtime), FEW + 1)
    pool.will_answer()
    return lambda: closed(runtime)


def ends_badly(pool: Pool) -> Act:
    """A callback has failed: the runner is killed."""
    runtime = pool.start()
    bush(pool.folder_of(runtime))
    pool.will_answer("ZeroDivisionError in on_close callback")
    return lambda: closed(runtime)


def dies(pool: Pool) -> Act:
    """By a signal without a name, and leaves more than the tries of the worker itself remove."""
    runtime = pool.start()
    fill(pool.folder_of(runtime), 5 * FEW)
    os.kill(runtime.pid, 35)
    wait_until(runtime._child.ended)
    return lambda: closed(runtime)


def is_swept(pool: Pool) -> Act:
    """Sweep folders that dead workers have left, next to those in use."""
    few, many = pool.temporary / f"{PREFIX}few", pool.temporary / f"{PREFIX}many"
    few.mkdir()
    many.mkdir()
    bush(few)
    fill(many, FEW + 1)
    return pool.backend.sweep


def closed(runtime: SharedRuntime) -> None:
    runtime.close(5)
    assert not runtime.alive


SCENES = [ends_well, leaves_much, ends_badly, dies, is_swept]
# By name, so that the list cannot become empty unseen; each of these has failed in one scene at least.
EXPECTED = {
    "posix.unlink", "posix.rmdir", "posix.rename", "posix.open", "posix.scandir", "posix.close", "posix.killpg",
    "posix.kill", "fcntl.flock", "subprocess.__init__", "subprocess.communicate",
    "isolane.stream.receive", "isolane.stream.close", "psutil.process_iter", "pathlib.lstat", "pathlib.rmdir",
    "select.poll", "socket.recv", "socket.send", "_signal.pidfd_send_signal",
}  # fmt: skip


def test_each_call_fails_once_and_nothing_stays(pool: Pool) -> None:
    failed: set[Call] = set()
    stays: dict[tuple[str, Call, str], dict[str, object]] = {}
    for scene in SCENES:
        for call in calls_of(pool, scene):
            # Where it was seen before, the harder error is enough.
            for error in ERRORS[int(call in failed) :]:
                act = scene(pool)
                with failing(call.__eq__, error) as struck:
                    act()
                failed.update(struck)
                pool.settle()
                if left := pool.left():
                    stays[scene.__name__, call, type(error()).__name__] = left
    assert stays == {}
    assert {call.callee for call in failed} >= EXPECTED


def calls_of(pool: Pool, scene: Callable[[Pool], Act]) -> list[Call]:
    scene(pool)()  # what is done only once in a process is not what is meant
    act = scene(pool)
    with recorded() as calls:
        act()
    pool.settle()
    assert pool.left() == {}
    return calls


def test_a_start_that_fails_anywhere_leaves_nothing(pool: Pool) -> None:
    with recorded() as calls:
        runtime: Runtime | None = pool.backend.start(PLACEMENT, identity=ACME)
    end(pool, runtime)
    assert {call.callee for call in calls} >= {
        "tempfile.mkdtemp",
        "socket.socketpair",
    }
    for call in calls:
        for error in ERRORS:
            runtime = None
            with failing(call.__eq__, error) as struck, contextlib.suppress(Exception):
                runtime = pool.backend.start(PLACEMENT, identity=ACME)
            assert struck
            end(pool, runtime)
            assert pool.left() == {}, call


def end(pool: Pool, runtime: Runtime | None) -> None:
    if runtime is not None:
        runtime.kill()
        runtime.close(5)
    pool.settle()
