"""Reading the semantic header of a module, and comparing it with the module's code."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

WORDS = ("Timing", "Model", "Guarantee", "Failure")
TIMINGS = ("import-time", "request-time", "deferred", "background-worker", "scheduled")
GUARANTEES = (
    "deterministic", "idempotent", "at-least-once", "at-most-once", "exactly-once", "best-effort",
)  # fmt: skip
_PART = re.compile(rf"\b({'|'.join(WORDS)}):\s")
_PROMISE = re.compile(r"\b(?:at-least|at-most|exactly|best)-\w+")
_ANY_ERROR = {"Exception", "BaseException"}
_BLOCKING = {
    "time.sleep",
    "subprocess.run",
    "requests.get",
    "requests.post",
    "urllib.request.urlopen",
}
_STARTS_LOOP = {
    "asyncio.run",
    "asyncio.Runner",
    "asyncio.new_event_loop",
    "asgiref.sync.async_to_sync",
}
_CLOCK_AND_CHANCE = {"time", "random", "secrets", "os", "socket", "subprocess"}
_PUBLISHES = {
    "apply_async",
    "delay",
    "send_task",
    "executions.placement.chain.publish",
    "admit_and_send",
}
_STARTS_PROCESS = {"Popen", "fork", "posix_spawn", "execv", "execve", "execvpe"}
_STARTS_THREAD = {"Thread", "Timer", "ThreadPoolExecutor"}
_OWNS_RETRIES = {
    "redis.retry", "executions.submission.idempotency", "executions.semantics.decisions.after_step",
    "executions.semantics.decisions.after_loss",
}  # fmt: skip
_CELERY_RETRIES = {"retry", "replace", "signature_from_request"}
_CELERY_OPTIONS = {
    "autoretry_for",
    "max_retries",
    "retry_backoff",
    "countdown",
    "eta",
    "link_error",
    "acks_late",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """The four headings with their texts."""

    timing: str
    model: str
    guarantee: str
    failure: str


class Module:
    """One file, parsed."""

    def __init__(self, source: str, name: str) -> None:
        self.name = name
        self.tree = ast.parse(source)
        self.docstring = ast.get_docstring(self.tree) or ""

    @classmethod
    def read(cls, root: Path, path: str) -> "Module":
        """The module at a path below the root."""
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return cls((root / path).read_text(encoding="utf-8"), name)

    @cached_property
    def header(self) -> Header | None:
        """Its header; None if one of the headings is missing."""
        parts = _PART.split(self.docstring)
        texts = dict(zip(parts[1::2], parts[2::2], strict=True))
        if not all(texts.get(word, "").strip() for word in WORDS):
            return None
        return Header(**{word.lower(): " ".join(texts[word].split()) for word in WORDS})

    @cached_property
    def imports(self) -> frozenset[str]:
        """All modules it imports, and the names it takes from them, with their module's."""
        return frozenset(_imports(self.tree))

    @cached_property
    def calls(self) -> frozenset[str]:
        """The names it calls: the last part, and the dotted name if its imports resolve it."""
        return frozenset(name for node in ast.walk(self.tree) for name in self._called(node))

    @property
    def async_functions(self) -> list[ast.AsyncFunctionDef]:
        """Its coroutines."""
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.AsyncFunctionDef)]

    @property
    def handlers(self) -> list[ast.ExceptHandler]:
        """Its exception handlers."""
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.ExceptHandler)]

    @property
    def bases(self) -> frozenset[str]:
        """The classes that its own are made from, by their last name."""
        classes = [node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]
        return frozenset(_last(base) for node in classes for base in node.bases)

    def called_in(self, tree: ast.AST) -> frozenset[str]:
        """Return the names that a part of it calls."""
        return frozenset(name for node in ast.walk(tree) for name in self._called(node))

    def _called(self, node: ast.AST) -> Iterator[str]:
        if not isinstance(node, ast.Call):
            return
        yield _last(node.func)
        dotted = ast.unparse(node.func)
        yield dotted
        yield from (name for name in self.imports if name.endswith(f".{dotted}"))


def boundaries(module: Module) -> list[str]:
    """Return the reasons why a module needs a header; empty if it needs none."""
    reasons = {
        "publishes": _PUBLISHES & module.calls,
        "starts a process": (_STARTS_PROCESS | {"subprocess.run"}) & module.calls,
        "starts a thread": (_STARTS_THREAD & module.calls) | ({"Thread"} & module.bases),
        "crosses sync and async": {f.name for f in module.async_functions}
        | {name for name in module.imports if name.partition(".")[0] in {"asyncio", "asgiref"}},
        "owns retries or idempotency": _OWNS_RETRIES & module.imports,
        "is a worker's entrypoint": {"celery.signals", "celery.shared_task", "celery.Celery"}
        & module.imports,
        "crosses layers": {name for name in module.imports if _crosses(module.name, name)},
    }
    return [f"{reason}: {', '.join(sorted(found))}" for reason, found in reasons.items() if found]


def contradictions(module: Module) -> list[str]:
    """Return the contradictions between a module's header and its code."""
    header = module.header
    if header is None:
        return ["it has no header"]
    checks = (_vocabulary, _model, _guarantee, _failure)
    return [*(found for check in checks for found in check(module, header)), *blocking(module)]


def _vocabulary(module: Module, header: Header) -> Iterator[str]:
    for word in _PROMISE.findall(header.guarantee):
        if word not in GUARANTEES:
            yield f"{word} is none of the guarantees"
    # In a runtime there is neither a request nor a worker: its timing is in plain words.
    if module.name.partition(".")[0] not in {"executions", "tenants"}:
        return
    if not any(timing in header.timing for timing in TIMINGS):
        yield f"its timing names none of {', '.join(TIMINGS)}"
    if not header.model.startswith(("sync", "async")):
        yield "its model is neither sync nor async nor sync-over-async"


def _model(module: Module, header: Header) -> Iterator[str]:
    starts_loop = _STARTS_LOOP & module.calls
    is_sync = re.match(r"sync\b(?!-over)", header.model) is not None
    if is_sync and (module.async_functions or starts_loop):
        yield "its model is sync, and it has async code"
    if re.match(r"async\b", header.model) and not module.async_functions:
        yield "its model is async, and it has no async def"
    if starts_loop and not re.search(r"sync-over-async|event loop", header.model):
        yield "it runs an event loop, which its model does not say"
    if _STARTS_THREAD & (module.calls | module.bases) and not re.search(
        "thread|loop", module.docstring
    ):
        yield "it starts a thread, which it does not say"


def _guarantee(module: Module, header: Header) -> Iterator[str]:
    promised = header.guarantee
    if promised.startswith("deterministic") and _CLOCK_AND_CHANCE & module.imports:
        yield "it is deterministic, and it asks the clock, chance or the system"
    if promised.startswith("at-most-once") and _tries_again(module):
        yield "it is at-most-once, and it tries again"
    if promised.startswith("exactly-once") and not _is_transactional(module):
        yield "it is exactly-once, and it neither has a transaction nor calls a transition"
    if promised.startswith("best-effort") and header.failure.startswith("bubble"):
        yield "it is best-effort, and its failures reach the caller"


def _failure(module: Module, header: Header) -> Iterator[str]:
    swallowing = [handler for handler in module.handlers if not _raises(handler)]
    if header.failure.startswith("bubble") and any(_catches_all(one) for one in swallowing):
        yield "its failures bubble, and it swallows them"
    if header.failure.startswith("fails open") and not swallowing:
        yield "it fails open, and it catches nothing"
    if header.failure.startswith("fails open") and len(swallowing) < len(module.handlers):
        yield "it fails open, and it raises what it caught"


def blocking(module: Module) -> list[str]:
    """Coroutines that would hold their event loop."""
    return [
        f"async def {function.name} blocks: {', '.join(sorted(found))}"
        for function in module.async_functions
        if (found := _BLOCKING & module.called_in(function))
    ]


def publishing(module: Module) -> list[str]:
    """Return its calls that send to the broker."""
    return sorted(_PUBLISHES & module.calls)


def celery_retries(module: Module) -> list[str]:
    """Return the places at which Celery would decide about a retry, which only PostgreSQL may."""
    calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    options = {keyword.arg for call in calls for keyword in call.keywords} & _CELERY_OPTIONS
    of_self = {_last(call.func) for call in calls if _is_of_self(call.func)}
    return sorted(str(found) for found in options | (of_self & _CELERY_RETRIES))


def waiting(module: Module) -> list[str]:
    """Return its calls that wait without a limit."""
    return sorted({"sleep", "join", "wait", "result"} & module.calls)


def timing_leaks(modules: dict[str, Module]) -> list[str]:
    """Modules of one time that are imported by those of another: a request never runs what only workers do."""
    leaks = []
    for module in modules.values():
        header = module.header
        of_request = module.name.startswith(("executions.api", "tenants.api", "tenants.middleware"))
        of_worker = module.name.startswith(
            ("executions.worker", "executions.worker.tasks", "executions.worker.signals")
        )
        for name in sorted(module.imports & set(modules)):
            other = modules[name].header
            if other is None or header is None:
                continue
            if of_request and _is_only(other, "background-worker"):
                leaks.append(f"{module.name} imports {name}, which is for workers")
            if of_worker and _is_only(other, "request-time"):
                leaks.append(f"{module.name} imports {name}, which is for requests")
    return leaks


def _is_only(header: Header, timing: str) -> bool:
    return [one for one in TIMINGS if one in header.timing] == [timing]


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _crosses(importer: str, imported: str) -> bool:
    """From the platform to the worker's side of runtimes, and from there onto the wire."""
    if importer.startswith("executions"):
        return imported.startswith("resources.runtimes")
    return importer.startswith("resources") and imported.startswith("isolane.stream")


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_of_self(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and getattr(function.value, "id", "") == "self"


def _raises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(node, ast.Raise) for node in ast.walk(handler))


def _catches_all(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or _last(handler.type) in _ANY_ERROR


def _tries_again(module: Module) -> bool:
    """A loop in which an error is caught and the loop goes on."""
    loops = [node for node in ast.walk(module.tree) if isinstance(node, ast.While | ast.For)]
    caught = [
        node for loop in loops for node in ast.walk(loop) if isinstance(node, ast.ExceptHandler)
    ]
    return any(
        not any(isinstance(node, ast.Raise | ast.Return | ast.Break) for node in ast.walk(handler))
        for handler in caught
    )


def _is_transactional(module: Module) -> bool:
    imports_one = any(name.startswith("executions.transitions") for name in module.imports)
    return imports_one or "atomic" in module.calls
