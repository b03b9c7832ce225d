"""isolane.environment_block: what the kernel shows of a process after its variables were written over."""

import subprocess
import sys

PROGRAM = """
import sys
from pathlib import Path
from isolane.environment_block import find_variables
(place,) = find_variables(["HOME"])
place.overwrite(sys.argv[1])
print(Path("/proc/self/environ").read_bytes().decode().split(chr(0))[:-1])
"""


def shown_after(value: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, value],
        env={"OTHER_HOME": "/a", "HOME": "/acme", "LANG": "C"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_value_is_written_over_one_of_the_same_length() -> None:
    assert shown_after("/corp") == "['OTHER_HOME=/a', 'HOME=/corp', 'LANG=C']"


def test_a_longer_or_shorter_value_changes_nothing() -> None:
    for value in ("/globex", "/a"):
        assert shown_after(value) == "['OTHER_HOME=/a', 'HOME=/acme', 'LANG=C']"
