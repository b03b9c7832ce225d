"""Decisions are sync and pure in form: the same arguments give the same answer, now and when replayed."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
CONTRACT = "Decisions are pure: no database, no broker, no network"
WRITES_DOCS = (
    ROOT / "executions" / "blueprints" / "docs.py"
)  # a command of the developers', decides nothing
IMPURE_MODULES = frozenset(
    {
        "asyncio", "io", "logging", "multiprocessing", "os", "pathlib", "random", "secrets", "shutil", "socket",
        "subprocess", "tempfile", "time", "django.conf", "django.db.connection", "django.db.connections",
        "django.utils.timezone",
    }
)  # fmt: skip
IMPURE_CALLS = frozenset({"now", "utcnow", "today", "uuid1", "uuid4", "open", "print", "input"})


def decision_files() -> list[Path]:
    """The modules that the import contract names, packages with all that is in them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    (named,) = [
        contract["source_modules"] for contract in contracts if contract["name"] == CONTRACT
    ]
    places = [ROOT.joinpath(*module.split(".")) for module in named]
    files = [
        file
        for place in places
        for file in (place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")])
    ]
    return sorted(set(files) - {WRITES_DOCS})


def impurities(source: str) -> list[str]:
    """Return the parts of a module that could make a decision differ, or wait."""
    return [found for node in ast.walk(ast.parse(source)) for found in _impurities_of(node)]


def _impurities_of(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.AsyncFunctionDef(name=name):
            yield f"async def {name}"
        case ast.Await() | ast.AsyncFor() | ast.AsyncWith():
            yield "await"
        case ast.Global(names=names):
            yield f"global {', '.join(names)}"
        case ast.Import(names=names):
            yield from (alias.name for alias in names if alias.name in IMPURE_MODULES)
        case ast.ImportFrom(module=str(module), names=names):
            full = {module, *(f"{module}.{alias.name}" for alias in names)}
            yield from sorted(full & IMPURE_MODULES)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"))):
            pass  # what the caller brought, a clock for instance
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in IMPURE_CALLS:
            yield f"{name}()"


@pytest.mark.parametrize("file", decision_files(), ids=lambda file: str(file.relative_to(ROOT)))
def test_decision_modules_are_sync_and_pure(file: Path) -> None:
    assert impurities(file.read_text(encoding="utf-8")) == []


def test_the_contract_names_the_decisions() -> None:
    names = {str(file.relative_to(ROOT)) for file in decision_files()}
    assert names >= {
        "executions/semantics/decisions.py",
        "executions/semantics/seeds.py",
        "executions/placement/rules.py",
        "executions/blueprints/plan.py",
        "resources/isolation_choice.py",
        "tenants/roles.py",
    }


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("async def decide(): ...", "async def decide"),
        ("import time", "time"),
        ("from random import random", "random"),
        ("from django.conf import settings", "django.conf"),
        ("from django.db import connection", "django.db.connection"),
        ("def decide():\n    return datetime.now()", "now()"),
        ("def decide():\n    import os", "os"),
        ("def decide():\n    return open('x')", "open()"),
        ("def decide():\n    global LAST\n    LAST = 1", "global LAST"),
    ],
)
def test_an_impure_module_is_found(source: str, found: str) -> None:
    assert found in impurities(source)


def test_pure_ones_are_let_be() -> None:
    assert (
        impurities("from datetime import datetime\ndef decide(at: datetime, now: int): return at")
        == []
    )
