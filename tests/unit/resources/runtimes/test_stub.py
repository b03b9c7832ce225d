"""resources.runtimes.stub: a script instead of processes."""

import threading
import time

from isolane.protocol import NodeDescription, Run
from isolane.results import Code, StepResult
from resources.runtimes.base import Runtime
from resources.runtimes.stub import StubBackend, fails, succeeds
from tests.placements import ACME, a_placement

PLACEMENT = a_placement()
BACKEND_SCRIPT = {"good": succeeds({"x": 1}), "bad": fails(Code.TIMEOUT, "late")}


def run_node(runtime: Runtime, uses: str) -> StepResult:
    run = Run(
        step="s",
        uses=uses,
        parameters={},
        variables={},
        attempt=1,
        seed=1,
        timeout_s=1.0,
        idempotency_key="k",
    )
    never = threading.Event()
    return runtime.run(
        run, deadline=time.monotonic() + 1, cancelled=never, on_frame=lambda frame: None
    )


def test_nodes_do_what_the_script_says() -> None:
    backend = StubBackend(level="stub", script=BACKEND_SCRIPT)
    runtime = backend.start(PLACEMENT, identity=ACME)
    runtime.open()
    assert run_node(runtime, "good").output == {"x": 1}
    assert run_node(runtime, "bad").code is Code.TIMEOUT
    assert run_node(runtime, "other").code is Code.SKILL_NOT_FOUND
    assert [run.uses for _, run in backend.runs] == ["good", "bad", "other"]


def test_the_catalogue_lists_the_script() -> None:
    catalogue = StubBackend(level="stub", script=BACKEND_SCRIPT).describe()
    assert [node.name for node in catalogue.nodes] == ["bad", "good"]


def test_a_node_may_be_described() -> None:
    good = NodeDescription(
        name="good", parameters={"type": "object"}, idempotent=True, deterministic=True
    )
    backend = StubBackend(level="stub", script=BACKEND_SCRIPT, descriptions={"good": good})
    bad, described = backend.describe().nodes
    assert described is good
    assert (bad.name, bad.parameters, bad.idempotent) == ("bad", {}, False)


def test_closing_is_noted_once_and_stop_ends_all() -> None:
    backend = StubBackend(level="stub", script={})
    runtime, other = (
        backend.start(PLACEMENT, identity=ACME),
        backend.start(PLACEMENT, identity=ACME),
    )
    assert runtime.close(1) == runtime.close(1) == ()
    assert backend.closed == [PLACEMENT]
    assert not runtime.alive
    assert other.alive
    backend.stop()
    assert not other.alive
