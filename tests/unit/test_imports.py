"""Importing any module does no I/O: definitions only, the work comes later."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
WATCH = Path(__file__).with_name("import_watch.py")
PACKAGES = ("isolane", "orchestrator", "tenants", "executions", "resources")
SETTINGS = "DJANGO_SETTINGS_MODULE"
RULE_BREAKERS = {
    "a socket": ("import socket\nsocket.socket()", "socket.__new__"),
    "a look at the network": (
        "import socket\nsocket.getaddrinfo('localhost', 1)",
        "socket.getaddrinfo",
    ),
    "a process": (
        "import subprocess, sys\nsubprocess.run([sys.executable, '-V'])",
        "subprocess.Popen",
    ),
    "a fork": ("import os\nif not os.fork(): os._exit(0)", "os.fork"),
    "a thread": (
        "import threading\nthreading.Thread(target=int).start()",
        "_thread.start_new_thread",
    ),
    "a file written": ("open('made', 'w').close()", "open made"),
    "a file written by flags": (
        "import os\nos.close(os.open('made', os.O_CREAT | os.O_WRONLY))",
        "open made",
    ),
    "a file read": ("from pathlib import Path\nPath('/etc/hosts').read_text()", "open /etc/hosts"),
    "a temporary file": ("import tempfile\ntempfile.mkdtemp(dir='.')", "tempfile.mkdtemp"),
    "a folder": ("import os\nos.mkdir('made')", "os.mkdir made"),
}


def faults_of(root: Path, *packages: str, settings: str = "") -> tuple[list[str], int]:
    """Import all their modules in a fresh process; return the faults and the number of modules."""
    environment = {name: value for name, value in os.environ.items() if name != SETTINGS}
    if settings:
        environment[SETTINGS] = settings
    # Without -B, Python itself would write bytecode.
    command = [sys.executable, "-B", str(WATCH), str(root), *packages]
    done = subprocess.run(
        command, env=environment, cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    *faults, last = [line for line in done.stdout.splitlines() if ":" in line or "modules" in line]
    return faults, int(last.split()[0])


def make_package(folder: Path, **modules: str) -> None:
    package = folder / "package"
    package.mkdir()
    for name, source in {"__init__": "", **modules}.items():
        (package / f"{name}.py").write_text(source)


def test_importing_any_module_opens_no_socket_file_or_process() -> None:
    faults, number = faults_of(ROOT, *PACKAGES, settings="orchestrator.settings")
    assert faults == []
    assert number > 200


@pytest.mark.parametrize("breaks", RULE_BREAKERS)
def test_a_module_that_breaks_the_rule_is_named(breaks: str, tmp_path: Path) -> None:
    source, fault = RULE_BREAKERS[breaks]
    make_package(tmp_path, culprit=source, bystander="from package import culprit")
    faults, number = faults_of(tmp_path, "package")
    assert number == 3
    assert faults[0].startswith(f"package.culprit: {fault}")
    assert all(line.startswith("package.culprit: ") for line in faults)


def test_what_a_module_only_defines_or_imports_is_no_fault(tmp_path: Path) -> None:
    """Nor what a package of others reads of its own while it is imported."""
    lazy = "import json, socket, subprocess, threading\ndef later(): open('made', 'w')\nLOCK = threading.Lock()"
    reads = "from importlib.metadata import version\nimport psutil\nVERSION = version('django')"
    make_package(tmp_path, lazy=lazy, reads=reads)
    assert faults_of(tmp_path, "package") == ([], 3)
