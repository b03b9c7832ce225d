"""One word for one thing: glossary words name what exists, and no class name stands for two things."""

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PRODUCT = ("isolane", "foundation", "tenants", "resources", "executions", "orchestrator")
ROW = re.compile(r"^\| ([a-z][a-z ]+) \| (.+) \| `([\w/.-]+)` \|$", re.MULTILINE)
# Inner classes that Django and DRF ask for by name.
BY_CONVENTION = frozenset({"Meta", "Command", "Migration"})


def words() -> list[tuple[str, str, str]]:
    return ROW.findall((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))


def classes() -> dict[str, list[str]]:
    """Every class of the product by its name, with the files that define it."""
    found = defaultdict(list)
    for package in PRODUCT:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and node.name not in BY_CONVENTION:
                    found[node.name].append(str(path.relative_to(ROOT)))
    return found


def test_every_class_name_is_unique() -> None:
    found = classes()
    assert len(found) > 300
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_every_word_is_explained_once_and_in_order() -> None:
    names = [word for word, _, _ in words()]
    assert len(names) >= 40
    assert names == sorted(set(names))


def test_every_word_names_the_module_or_model_it_belongs_to() -> None:
    missing = {word: path for word, _, path in words() if not (ROOT / path).is_file()}
    assert missing == {}
    # The file speaks of its word: in its name, a class, a function or its docstring.
    silent = [word for word, _, path in words() if not _mentions(ROOT / path, word)]
    assert silent == []


def _mentions(path: Path, word: str) -> bool:
    text = f"{path.stem} {path.read_text(encoding='utf-8')}".lower()
    return all(part in text for part in word.split())
