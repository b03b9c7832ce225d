"""What a test needs of the machine: without it the test is skipped, and fails where sandboxes are required.

`.ci/run` requires them, so that it never passes because nothing was tried.
"""

import os
from typing import NoReturn

import pytest

VARIABLE = "TESTS_REQUIRE_SANDBOXES"


def give_up(reason: str) -> NoReturn:
    """Skip the test, or fail it where sandboxes are required."""
    if os.environ.get(VARIABLE):
        pytest.fail(f"{VARIABLE} is set, and {reason}")
    pytest.skip(reason)
