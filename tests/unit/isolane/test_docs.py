"""docs/nodes.md: its examples work as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import isolane

ROOT = Path(isolane.__file__).parent.parent
BLOCK = re.compile(r"^```python\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TASKS = """
from isolane.node import NodeRegistry
from isolane.discovery import node_sources
registry = NodeRegistry()
for source in node_sources(registry, packages=["shop_nodes"], tasks=["billing"]):
    source.load()
vat, send = registry.get("task:billing.work.vat"), registry.get("task:billing.work.send_invoice")
assert vat.call(None, vat.checked({"net": 100.0})) == 19.0
assert send.call(None, send.checked({"number": 7})) == "sent 7"
"""


def written(folder: Path) -> list[str]:
    """Write the examples to the files that they name."""
    blocks = BLOCK.findall((ROOT / "docs" / "nodes.md").read_text())
    for name, source in blocks:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return [name for name, _ in blocks]


def run(folder: Path, *arguments: str) -> str:
    """Run Python where only Isolane and the examples are."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_block_of_python_is_an_example_with_a_file(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "nodes.md").read_text()
    assert len(written(tmp_path)) == text.count("```python") > 0


def test_the_tests_of_the_examples_pass(tmp_path: Path) -> None:
    tests = [name for name in written(tmp_path) if name.startswith("test_")]
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    assert "6 passed" in run(tmp_path, "-m", "pytest", "-q", "-p", "no:django", *tests)


def test_the_task_functions_are_found_and_work(tmp_path: Path) -> None:
    written(tmp_path)
    run(tmp_path, "-c", TASKS)


def test_every_built_in_node_is_in_the_table() -> None:
    import isolane.nodes  # noqa: F401 - registers them
    from isolane.node import default_registry

    text = (ROOT / "docs" / "nodes.md").read_text()
    built_in = [n.name for n in default_registry if n.function.__module__.startswith("isolane.")]
    assert built_in
    assert [name for name in built_in if f"| `{name}` |" not in text] == []
