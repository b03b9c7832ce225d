"""isolane.environment_block: the kernel shows the value that was written over the old one."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from isolane.environment_block import find_variables
for variable in find_variables([sys.argv[1]]):
    variable.overwrite(sys.argv[2])
with open("/proc/self/environ", "rb") as file:
    print(sorted(file.read().decode().strip(chr(0)).split(chr(0))))
"""


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("HOME", "/new", ["A=b", "HOME=/new", "OLD_HOME=/odd"]),
        ("A", "c", ["A=c", "HOME=/old", "OLD_HOME=/odd"]),
        ("HOME", "/longer", ["A=b", "HOME=/old", "OLD_HOME=/odd"]),
        ("NONE", "/new", ["A=b", "HOME=/old", "OLD_HOME=/odd"]),
    ],
)
def test_a_value_of_the_same_length_is_written(name: str, value: str, shown: list[str]) -> None:
    environ = {"OLD_HOME": "/odd", "HOME": "/old", "A": "b"}
    done = subprocess.run(
        [sys.executable, "-E", "-c", PROGRAM, name, value],
        env=environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == str(shown)
