"""The statements of the product: named once, headed, short, and without a state of their own."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from executions.states import ExecutionState, StepState, TicketState
from tests.product_statements import (
    PARTS,
    ROOT,
    all_statements,
    checkpoints,
    modules_with_statements,
)

HEAD = ["Locks:", "Guard:", "Writes:", "Events:", "Returns:"]
LINES = 40
STATES = {state.value for kind in (ExecutionState, StepState, TicketState) for state in kind}
STATE = re.compile(rf"'(?:{'|'.join(sorted(STATES))})'")
OURS = [module for module in modules_with_statements() if module.__name__.startswith("executions.")]
TRANSITIONS = [module for module in OURS if ".transitions." in module.__name__]
MODULE = pytest.mark.parametrize("module", OURS, ids=lambda module: module.__name__)


def source(module: ModuleType) -> str:
    return Path(str(module.__file__)).read_text(encoding="utf-8")


def heads(text: str) -> Iterator[tuple[int, list[str]]]:
    """The line of each statement, and the first words of the comment above it."""
    lines = text.splitlines()
    for node in ast.parse(text).body:
        match node:
            case ast.Assign(value=ast.Call(func=ast.Name(id="Statement" | "SettlingStatement"))):
                first = node.lineno
            case ast.FunctionDef(name="checkpoint_statement"):
                first = node.decorator_list[0].lineno
            case _:
                continue
        start = first - 1
        while start and lines[start - 1].startswith("#"):
            start -= 1
        words = [line[2:].split(" ")[0] for line in lines[start : first - 1]]
        yield first, [word for word in words if word]


def texts(text: str) -> Iterator[tuple[int, str]]:
    """The strings of a module as they are written, and where each begins; docstrings are not among them."""
    tree = ast.parse(text)
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and isinstance(node.body[0], ast.Expr)
    }
    inner = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr() | ast.Constant(value=str()) if id(node) not in documented | inner:
                yield node.lineno, ast.get_source_segment(text, node) or ""


def test_they_are_found() -> None:
    names = set(all_statements())  # refuses a name that is used twice
    assert {"submit", "place", "claim", "checkpoint", "close", "close_and_settle", "renew"} <= names
    assert len(names) >= 30
    assert {statement.name for statement in checkpoints()} == {"checkpoint"}
    assert len(list(checkpoints())) == 2 ** len(PARTS)


def test_the_name_of_each_is_in_its_text() -> None:
    for name, statement in all_statements().items():
        assert re.match(rf"\w+ /\* isolane:{name} \*/ ", statement.text)


def test_every_process_writes_the_same_texts() -> None:
    """A set of states has another order in each; the server would have as many statements as processes."""
    printed = "from tests.product_statements import *; print(*map(lambda s: s.text, all_statements().values()))"
    start = f"import tests.plugin, django; django.setup(); {printed}"
    texts = {
        subprocess.run(
            [sys.executable, "-c", start],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT, capture_output=True, check=True, text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(texts) == 1
    assert "isolane:claim" in texts.pop()


@MODULE
def test_each_has_a_head(module: ModuleType) -> None:
    found = list(heads(source(module)))
    assert found
    for line, words in found:
        assert [word for word in words if word in HEAD] == HEAD, f"{module.__name__}:{line}"


@MODULE
def test_none_is_longer_than_a_page(module: ModuleType) -> None:
    long = [line for line, text in texts(source(module)) if text.count("\n") >= LINES]
    assert long == []


@MODULE
def test_states_come_from_the_tables(module: ModuleType) -> None:
    """A literal would stay behind when a state is renamed, and would be compared with no table."""
    found = {line: STATE.findall(text) for line, text in texts(source(module)) if '"""' in text}
    assert {line: states for line, states in found.items() if states} == {}


@MODULE
def test_texts_are_composed_in_one_way(module: ModuleType) -> None:
    """By f-strings; `.format` over one would need doubled braces."""
    called = {
        node.func.attr
        for node in ast.walk(ast.parse(source(module)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert "format" not in called
    assert not [text for _, text in texts(source(module)) if text.startswith("f") and "{{" in text]


def test_one_insert_into_the_events() -> None:
    folder = Path(str(TRANSITIONS[0].__file__)).parent
    found = [
        file.name
        for file in folder.glob("*.py")
        if "INTO executions_executionevent" in file.read_text(encoding="utf-8")
    ]
    assert found == ["events.py"]


def test_the_tests_of_these_texts_find_what_they_look_for() -> None:
    example = '# Locks:   a\n# Writes:  b\nA = Statement(\'a\', f"""SELECT \'queued\' {x}""")\n'
    assert list(heads(example)) == [(3, ["Locks:", "Writes:"])]
    assert [STATE.findall(text) for _, text in texts(example) if '"""' in text] == [["'queued'"]]
