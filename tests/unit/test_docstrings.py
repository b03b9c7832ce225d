"""Docstrings are imperative or noun phrases: none begins with a question word."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("isolane", "foundation", "tenants", "resources", "executions", "orchestrator")
QUESTION_WORD = re.compile(
    r"(?:What|Who|Whoever|Whose|Whether|How|Where|That|Which|Why|When)(?:ever)?\b"
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def questions(source: str) -> Iterator[str]:
    """Yield the docstrings of a module that begin with a question word."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED):
            docstring = ast.get_docstring(node) or ""
            if QUESTION_WORD.match(docstring):
                yield docstring.partition("\n")[0]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_docstring_begins_with_a_question_word(package: str) -> None:
    paths = [path.relative_to(ROOT).as_posix() for path in (ROOT / package).rglob("*.py")]
    assert paths
    found = {
        path: begun
        for path in paths
        if (begun := list(questions((ROOT / path).read_text(encoding="utf-8"))))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('"""What it does."""', ["What it does."]),
        ('def f():\n    """Whether it is."""', ["Whether it is."]),
        ('class A:\n    """Whoever asks."""', ["Whoever asks."]),
        ('"""Return what it does."""', []),
        ('"""Thatched roofs."""', []),
    ],
)
def test_a_question_word_at_the_beginning_is_found(source: str, found: list[str]) -> None:
    assert list(questions(source)) == found
