"""Every statement of the product: found in the modules that make one, and not listed by hand."""

import importlib
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

from tenants.statement import Statement

ROOT = Path(__file__).parent.parent
PACKAGES = ("tenants", "resources", "executions", "orchestrator")
WRITTEN = re.compile(r"^\w+ = (?:Settling)?Statement\(", re.MULTILINE)
PARTS = ("logs", "costs", "variables", "outputs", "asks", "claims", "tracked")


def modules_with_statements() -> list[ModuleType]:
    """The modules in which a statement is written, not those that import one."""
    files = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    found = [
        ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for file in files
        if WRITTEN.search(file.read_text(encoding="utf-8"))
    ]
    return [importlib.import_module(name) for name in found]


def checkpoints() -> Iterator[Statement[Any]]:
    """The checkpoint in all its variants."""
    from executions.transitions.checkpoint_statement import checkpoint_statement

    for flags in product((False, True), repeat=len(PARTS)):
        yield checkpoint_statement(**dict(zip(PARTS, flags, strict=True)))


def all_statements() -> dict[str, Statement[Any]]:
    """All of them by name, of the checkpoint the variant with everything. A name that is used twice is refused."""
    found: dict[str, Statement[Any]] = {}
    for statement in (*_written(), *list(checkpoints())[-1:]):
        assert found.setdefault(statement.name, statement) is statement, statement.name
    return found


def _written() -> Iterator[Statement[Any]]:
    from executions.transitions.settlement import SettlingStatement

    for module in modules_with_statements():
        for value in vars(module).values():
            if isinstance(value, Statement):
                yield value
            elif isinstance(value, SettlingStatement):
                yield from (value.alone, value.settling)
