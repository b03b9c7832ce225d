"""Any files, any end of the runner, any call that fails: slots, runners, descriptors and folders are back to none."""

import os
from itertools import count

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from resources.runtimes.folder import PREFIX
from resources.runtimes.shared import SharedRuntime
from tests.debris import DEBRIS, nest
from tests.integration.resources.runtimes.conftest import wait_until
from tests.integration.resources.runtimes.teardown.calls import ERRORS, Error, failing
from tests.integration.resources.runtimes.teardown.pool import Pool

SIGNALS = (1, 9, 11, 15, 31, 34, 35, 49, 63, 64)
NEVER = 1_000_000

# Deep enough for many moves; the deepest are tried once.
KINDS = DEBRIS | {"deep": lambda folder: nest(folder, 60), "deepest": nest}
trees = st.lists(st.sampled_from(sorted(DEBRIS)), max_size=2)
endings = st.sampled_from(["clean", "errors", "silence", "garbage", "eof", *SIGNALS])
# Which of the calls fails; most teardowns make less than a hundred.
faults = st.one_of(st.just(NEVER), st.integers(0, 100))


@settings(
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example(tree=["deepest"], debris=["deepest"], ending=35, at=NEVER, error=ERRORS[0], kills=False)
@given(
    tree=trees,
    debris=trees,
    ending=endings,
    at=faults,
    error=st.sampled_from(ERRORS),
    kills=st.booleans(),
)
def test_nothing_stays(
    pool: Pool,
    *,
    tree: list[str],
    debris: list[str],
    ending: str | int,
    at: int,
    error: Error,
    kills: bool,
) -> None:
    runtime = pool.start()
    folder = pool.folder_of(runtime)
    for number, kind in enumerate(tree):
        (folder / str(number)).mkdir()
        KINDS[kind](folder / str(number))
    for number, kind in enumerate(debris):
        (pool.temporary / f"{PREFIX}{number}").mkdir()
        KINDS[kind](pool.temporary / f"{PREFIX}{number}")
    prepare(pool, runtime, ending)
    numbers = count()
    with failing(lambda _: next(numbers) == at, error):
        if kills:  # as the lease loop does, from another thread
            runtime.kill()
        runtime.close(0.05 if ending == "silence" else 5)
        pool.backend.sweep()
    assert pool.backend._pool.busy == set()
    pool.settle()
    assert pool.left() == {}


def prepare(pool: Pool, runtime: SharedRuntime, ending: str | int) -> None:
    """Prepare the runner's answer to the teardown of its context, if it still can answer."""
    match ending:
        case "clean":
            pool.will_answer()
        case "errors":
            pool.will_answer("ZeroDivisionError in on_close callback")
        case "garbage":
            pool.last_end.send(b"\0" * 64)
        case "eof":
            pool.last_end.close()
        case int(number):
            os.kill(runtime.pid, number)
            wait_until(runtime._child.ended)
