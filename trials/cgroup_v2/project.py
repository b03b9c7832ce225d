"""The second disk: the tree of the project, the installed packages, and the script that runs the tests.

Timing: some seconds.
Model: sync; git lists the files.
Guarantee: the tree is as it lies here, changes that are not committed included.
Failure: bubble.
"""

import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from orchestrator.env import PROJECT_ROOT
from trials.cgroup_v2 import disk
from trials.cgroup_v2.system import PROJECT

STATUS = "isolane-trial-status"  # begins the line with the result, at the end of a unit
_TEST_SECONDS = 400  # for one test on an emulated processor, the start of the servers included
_PACKAGES = "venv/lib/python3.11/site-packages"
_VENV = "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11\n"
# Debian's Python is older than 3.11.3, and redis needs more there than the running interpreter may have.
_GUEST_ONLY = ("async-timeout",)
# Editable installs point to directories of this machine.
_HOST_ONLY = shutil.ignore_patterns("__editable__*", "__pycache__")


def build(folder: Path, select: Sequence[str], users: Sequence[str]) -> Path:
    """Return the image of a disk with which the guest runs these tests as these users."""
    content = folder / "project"
    shutil.rmtree(content, ignore_errors=True)
    _copy_tree(content / "tree")
    _make_venv(content)
    (content / "units").mkdir()
    for user in users:
        unit = content / "units" / _unit_name(user)
        unit.write_text(unit_text(user, select), encoding="utf-8")
    (content / "run").write_text(script(users), encoding="utf-8")
    image = folder / "project.img"
    disk.make(content, image)
    shutil.rmtree(content)
    return image


def unit_text(user: str, select: Sequence[str]) -> str:
    """Return a unit as an operator would write it for a worker, with pytest in the worker's place.

    That of root has a shell beside it, as a platform that is started as a whole has a supervisor.
    """
    group = f"/sys/fs/cgroup/system.slice/{_unit_name(user)}"
    options = f"-v -p no:cacheprovider -p no:randomly --timeout={_TEST_SECONDS}"
    tests = f"{PROJECT}/venv/bin/python -m pytest {options} {shlex.join(select)}"
    return f"""[Service]
Type=oneshot
User={user}
Delegate=yes
WorkingDirectory={PROJECT}/tree
Environment=PYTHONDONTWRITEBYTECODE=1 HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis
ExecStart={_with_a_shell(tests) if user == "root" else tests}
ExecStopPost=/bin/sh -c 'echo "groups of the unit get: $(cat {group}/cgroup.subtree_control)"'
ExecStopPost=/bin/sh -c 'echo "{STATUS} {user} $EXIT_STATUS"'
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
"""


def _with_a_shell(tests: str) -> str:
    # With a second command behind it the shell stays.
    return f"/bin/sh -c {shlex.quote(f'{tests}; exit $?')}"


def script(users: Sequence[str]) -> str:
    """Return the script that runs one unit after the other."""
    runs = "".join(f"systemctl start {_unit_name(user)} 2>/dev/null\n" for user in users)
    return f"""echo "Linux $(uname -r), $(systemctl --version | head -n 1)"
mkdir -p /run/systemd/system
cp {PROJECT}/units/* /run/systemd/system/
systemctl daemon-reload
{runs}"""


def _unit_name(user: str) -> str:
    return f"isolane-as-{user}.service"


def _copy_tree(target: Path) -> None:
    listing = [
        "git",
        "-C",
        str(PROJECT_ROOT),
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    listed = subprocess.run(listing, capture_output=True, check=True).stdout  # noqa: S603
    for name in filter(None, listed.decode().split("\0")):
        source = PROJECT_ROOT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target / name)


def _make_venv(content: Path) -> None:
    packages = content / _PACKAGES
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-qq",
        "--no-deps",
        "--target",
        str(packages),
    ]
    subprocess.run([*pip, *_GUEST_ONLY], check=True)  # noqa: S603
    shutil.copytree(
        sysconfig.get_path("purelib"),
        packages,
        ignore=_HOST_ONLY,
        symlinks=True,
        dirs_exist_ok=True,
    )
    (packages / "project.pth").write_text(f"{PROJECT}/tree\n", encoding="utf-8")
    (content / "venv/pyvenv.cfg").write_text(_VENV, encoding="utf-8")
    (content / "venv/bin").mkdir()
    (content / "venv/bin/python").symlink_to("/usr/bin/python3.11")
