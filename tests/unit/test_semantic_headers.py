"""Files at a semantic boundary declare timing, model, guarantee and failure; and the code agrees."""

import ast
from functools import cache
from pathlib import Path

import pytest

from executions.semantics import decisions
from executions.worker.clocks import Clocks
from executions.worker.links import step_runner
from executions.worker.loops import lease, periodic
from resources.runtimes import supervision
from tests.unit.semantic_header import (
    WORDS,
    Module,
    blocking,
    boundaries,
    celery_retries,
    contradictions,
    publishing,
    timing_leaks,
    waiting,
)
from tests.unit.test_decision_modules import decision_files, impurities

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("isolane", "orchestrator", "tenants", "executions", "resources")
# These own retries or restarts in a way that no import shows.
NAMED = (
    "tenants.statement",
    "executions.worker.links.step_runner",
    "orchestrator.embedded.supervisor",
)

# At least five files over all layers, among them neutral, authority and boundary ones.
AUDITED = {
    "executions/api/views/executions.py": ("api", "boundary"),
    "executions/submission/submit.py": ("domain", "authority"),
    "executions/semantics/decisions.py": ("domain", "neutral"),
    "executions/worker/tasks.py": ("worker", "boundary"),
    "executions/worker/links/step_runner.py": ("worker", "authority"),
    "executions/worker/loops/lease.py": ("worker", "boundary"),
    "executions/submission/idempotency.py": ("platform", "authority"),
    "tenants/scope.py": ("platform", "authority"),
    "resources/runtimes/supervision.py": ("platform", "boundary"),
    "isolane/session.py": ("platform", "boundary"),
}
MAX_HEADER_LINE = 116
NEUTRAL = [path for path, (_, kind) in AUDITED.items() if kind == "neutral"]


@cache
def modules() -> dict[str, Module]:
    """Every module of ours by its name; migrations only carry what models say."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    read = [
        Module.read(ROOT, str(path.relative_to(ROOT)))
        for path in paths
        if "migrations" not in path.parts
    ]
    return {module.name: module for module in read}


def module(path: str) -> Module:
    return Module.read(ROOT, path)


def example(code: str, **given: str) -> Module:
    """A module with the header of an honest sync one, unless given otherwise."""
    usual = {
        "Timing": "background-worker",
        "Model": "sync",
        "Guarantee": "at-least-once",
        "Failure": "abort",
    }
    words = " ".join(f"{word}: {text}." for word, text in (usual | given).items())
    return Module(f'"""An example.\n\n{words}\n"""\n{code}', "executions.example")


# --- modules that need a header
def test_every_file_at_a_boundary_has_a_header() -> None:
    without = {
        name: reasons
        for name, found in modules().items()
        if found.header is None and (reasons := boundaries(found))
    }
    assert without == {}
    assert [name for name in NAMED if modules()[name].header is None] == []


def test_boundaries_are_found_at_all() -> None:
    found = {name for name, one in modules().items() if boundaries(one)}
    assert found >= {
        "executions.placement.chain",
        "executions.worker.tasks",
        "executions.worker.signals",
        "executions.worker.loops.periodic",
        "executions.worker.links.closing",
        "executions.submission.idempotency",
        "executions.submission.submit",
        "resources.runtimes.zygote",
        "isolane.runner_context",
        "isolane.session",
    }
    assert "executions.semantics.decisions" not in found
    assert "executions.states" not in found


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("chain(*links).apply_async()", "publishes"),
        ("from executions.placement.chain import publish\npublish(spec)", "publishes"),
        ("import subprocess\nsubprocess.run(['true'])", "starts a process"),
        ("import threading\nthreading.Thread(target=work).start()", "starts a thread"),
        ("class Loop(threading.Thread): ...", "starts a thread"),
        ("async def fetch(): ...", "crosses sync and async"),
        ("from asgiref.sync import async_to_sync", "crosses sync and async"),
        ("from executions.semantics.decisions import after_step", "owns retries"),
        ("from executions.submission import idempotency", "owns retries"),
        ("from celery import shared_task", "is a worker's entrypoint"),
        ("from celery.signals import task_prerun", "is a worker's entrypoint"),
        ("from resources.runtimes.base import Runtime", "crosses layers"),
    ],
)
def test_a_file_at_a_boundary_is_found(code: str, reason: str) -> None:
    (found,) = boundaries(Module(code, "executions.example"))
    assert found.startswith(reason)


@pytest.mark.parametrize(
    "code", ["from executions.services.publishing import publish\npublish(d)", "X = 1"]
)
def test_others_need_none(code: str) -> None:
    assert boundaries(Module(code, "executions.example")) == []


@pytest.mark.parametrize("missing", WORDS)
def test_a_header_without_one_of_its_words_is_none(missing: str) -> None:
    assert example("").header is not None
    docstring = " ".join(f"{word}: x." for word in WORDS if word != missing)
    assert Module(f'"""{docstring}"""', "example").header is None


@pytest.mark.parametrize(
    "name",
    [name for name, one in modules().items() if one.header],
)
def test_a_header_is_four_lines_one_for_each_word(name: str) -> None:
    docstring = modules()[name].docstring
    lines = docstring[docstring.index("Timing:") :].splitlines()
    assert [line.partition(":")[0] for line in lines] == list(WORDS)
    assert [line for line in lines if len(line) > MAX_HEADER_LINE] == []


# --- header and code
@pytest.mark.parametrize("name", [name for name, one in modules().items() if one.header])
def test_header_and_code_agree(name: str) -> None:
    assert contradictions(modules()[name]) == []


@pytest.mark.parametrize(
    ("code", "said", "found"),
    [
        ("async def f(): ...", {"Model": "sync"}, "has async code"),
        ("import asyncio\nasyncio.run(f())", {"Model": "sync"}, "has async code"),
        ("def f(): ...", {"Model": "async"}, "has no async def"),
        ("import asyncio\nasyncio.run(f())", {"Model": "async, somehow"}, "runs an event loop"),
        ("def f(): ...", {"Model": "quick"}, "neither sync nor async"),
        ("def f(): ...", {"Timing": "now and then"}, "its timing names none"),
        ("def f(): ...", {"Guarantee": "exactly-twice"}, "is none of the guarantees"),
        ("import threading\nthreading.Thread(target=f).start()", {}, "starts a thread"),
        ("import random", {"Guarantee": "deterministic"}, "asks the clock, chance"),
        (
            "while True:\n try: f()\n except OSError: continue",
            {"Guarantee": "at-most-once"},
            "it tries again",
        ),
        ("def f(): ...", {"Guarantee": "exactly-once"}, "neither has a transaction"),
        (
            "def f(): ...",
            {"Guarantee": "best-effort", "Failure": "bubble"},
            "reach the caller",
        ),
        ("try: f()\nexcept Exception: pass", {"Failure": "bubble"}, "swallows them"),
        ("def f(): ...", {"Failure": "fails open"}, "catches nothing"),
        ("try: f()\nexcept OSError: raise", {"Failure": "fails open"}, "raises what it caught"),
        (
            "import time\nasync def f(): time.sleep(1)",
            {"Model": "async"},
            "blocks: time.sleep",
        ),
    ],
)
def test_a_header_that_the_code_belies_is_found(
    code: str, said: dict[str, str], found: str
) -> None:
    assert any(found in line for line in contradictions(example(code, **said)))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def f(): ...", {}),
        ("async def f(): await g()", {"Model": "async"}),
        ("import asyncio\nasyncio.run(f())", {"Model": "sync-over-async"}),
        ("from django.db import transaction\ntransaction.atomic()", {"Guarantee": "exactly-once"}),
        ("try: f()\nexcept Exception as e: raise Ours() from e", {"Failure": "bubble"}),
        ("for x in y:\n try: f()\n except OSError: return", {"Guarantee": "at-most-once"}),
    ],
)
def test_an_honest_header_is_let_be(code: str, said: dict[str, str]) -> None:
    assert contradictions(example(code, **said)) == []


def test_no_coroutine_blocks_its_event_loop() -> None:
    assert [found for one in modules().values() for found in blocking(one)] == []


def test_requests_and_workers_do_not_run_each_others_code() -> None:
    assert timing_leaks(modules()) == []


@pytest.mark.parametrize(
    ("importer", "timing"),
    [
        ("executions.api.views.executions", "background-worker"),
        ("executions.worker.links.step_runner", "request-time"),
    ],
)
def test_a_leak_between_them_is_found(importer: str, timing: str) -> None:
    other = example("", Timing=timing)
    doc = "Timing: request-time. Model: sync. Guarantee: x. Failure: x."
    user = Module(f'"""{doc}"""\nfrom executions import example', importer)
    assert timing_leaks({importer: user, "executions.example": other}) != []
    both = example("", Timing="request-time and background-worker")
    assert timing_leaks({importer: user, "executions.example": both}) == []


def test_celery_never_tries_again() -> None:
    assert {name: found for name, one in modules().items() if (found := celery_retries(one))} == {}


@pytest.mark.parametrize(
    "code",
    [
        "def run_step(self): self.retry()",
        "@shared_task(autoretry_for=(OSError,))\ndef run_step(): ...",
        "run_step.apply_async(countdown=3)",
        "@shared_task(acks_late=True)\ndef run_step(): ...",
        "chain(a).apply_async(link_error=b)",
    ],
)
def test_a_retry_of_celerys_is_found(code: str) -> None:
    assert celery_retries(example(code)) != []


# --- the spot audit
def test_the_audit_spans_all_layers_and_kinds() -> None:
    assert len(AUDITED) >= 8
    assert {layer for layer, _ in AUDITED.values()} == {"api", "domain", "worker", "platform"}
    assert {kind for _, kind in AUDITED.values()} == {"neutral", "authority", "boundary"}


@pytest.mark.parametrize("path", [path for path in AUDITED if path not in NEUTRAL])
def test_the_audited_file_says_what_it_does(path: str) -> None:
    assert module(path).header is not None
    assert contradictions(module(path)) == []


@pytest.mark.parametrize("path", NEUTRAL)
def test_a_neutral_file_is_pure_and_needs_no_header(path: str) -> None:
    assert ROOT / path in decision_files()
    assert boundaries(module(path)) == []
    assert impurities((ROOT / path).read_text(encoding="utf-8")) == []
    assert "Pure" in module(path).docstring


def test_api_no_request_waits_for_a_run() -> None:
    views = module("executions/api/views/executions.py")
    assert "no request waits for a run" in views.docstring
    assert waiting(views) == []
    assert waiting(example("future.result()")) == ["result"]
    assert waiting(example("import time\ntime.sleep(1)")) == ["sleep"]


def test_domain_services_never_publish() -> None:
    for name, one in modules().items():
        if name.startswith(("executions.services", "tenants.services", "executions.transitions")):
            assert publishing(one) == [], name
    assert "never publish" in module("executions/submission/submit.py").docstring
    assert publishing(example("chain(a).apply_async()")) == ["apply_async"]


def test_worker_the_body_owns_the_retries_and_waits_as_long_as_it_says() -> None:
    header = module("executions/worker/links/step_runner.py").header
    assert header is not None
    assert "owns the retries: up to a minute it waits here" in header.failure
    assert decisions.MAX_HELD_SECONDS == 60
    assert "one pool thread" in header.model
    assert (
        not {"Thread", "ThreadPoolExecutor"}
        & module("executions/worker/links/step_runner.py").calls
    )
    # Nobody else calls an attempt of a step and tries it again.
    claiming = {name for name, one in modules().items() if "claim_step" in one.calls}
    assert claiming == {"executions.worker.links.claiming"}
    trying = {name for name, one in modules().items() if "try_claim" in one.calls}
    assert trying == {"executions.worker.links.step_runner", "executions.worker.links.runner"}
    assert issubclass(step_runner.StepFailed, Exception)


def test_worker_the_loop_keeps_the_times_it_names() -> None:
    header, clocks = module("executions/worker/loops/lease.py").header, Clocks()
    assert header is not None
    assert f"not claimed within {clocks.resend:g} s" in header.guarantee
    assert f"without a renewal for {clocks.self_fence:g} s" in header.failure
    assert "once a second" in module("executions/worker/loops/lease.py").docstring
    assert clocks.renewal == 1
    assert issubclass(lease.LeaseLoop, periodic.Periodic)  # "in a thread with its own connection"


def test_worker_the_task_raises_codes_only() -> None:
    tasks = module("executions/worker/tasks.py")
    assert leaking_handlers(tasks) == []
    assert leaking_handlers(example("try: f()\nexcept Exception as e: raise Failed(str(e))")) != []
    assert leaking_handlers(example("try: f()\nexcept Exception: raise Failed('x')")) != []


def leaking_handlers(one: Module) -> list[str]:
    """Handlers of everything that let the text of what they caught go on."""
    return [
        ast.unparse(handler)
        for handler in one.handlers
        if isinstance(handler.type, ast.Name) and handler.type.id in {"Exception", "BaseException"}
        for raised in ast.walk(handler)
        if isinstance(raised, ast.Raise) and not _is_from_none(raised)
    ]


def _is_from_none(raised: ast.Raise) -> bool:
    return isinstance(raised.cause, ast.Constant) and raised.cause.value is None


def test_platform_a_scope_is_always_restored() -> None:
    scope = module("tenants/scope.py")
    assert scope.header is not None
    assert "always restored" in scope.header.failure
    assert unrestored(scope) == []
    assert unrestored(
        example("@contextmanager\ndef f():\n    enter()\n    yield\n    leave()")
    ) == ["f"]


def unrestored(one: Module) -> list[str]:
    """Context managers that leave something behind when their block raises."""
    managers = [
        node
        for node in ast.walk(one.tree)
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(decorator) == "contextmanager" for decorator in node.decorator_list)
    ]
    return [
        node.name
        for node in managers
        if not any(
            isinstance(part, ast.With) or getattr(part, "finalbody", []) for part in node.body
        )
    ]


def test_platform_supervision_kills_what_it_cannot_trust_and_sees_a_cancel_in_time() -> None:
    supervised = module("resources/runtimes/supervision.py")
    assert supervised.header is not None
    assert f"noticed within {supervision._SLICE:g} s" in supervised.header.timing
    (handler,) = [
        one for one in supervised.handlers if ast.unparse(one.type or one) == "BaseException"
    ]
    assert [ast.unparse(line) for line in handler.body] == ["self._child.kill()", "raise"]


def test_platform_every_run_is_answered_whatever_the_step_raises() -> None:
    session = module("isolane/session.py")
    assert session.header is not None
    assert (
        "every RUN is answered by one RESULT, whatever the step raises" in session.header.guarantee
    )
    (run,) = [
        node
        for node in ast.walk(session.tree)
        if isinstance(node, ast.FunctionDef) and node.name == "_run"
    ]
    caught = [node for node in ast.walk(run) if isinstance(node, ast.ExceptHandler)]
    assert [ast.unparse(one.type) for one in caught if one.type] == ["BaseException"]
    assert not any(isinstance(node, ast.Raise) for node in ast.walk(run))
