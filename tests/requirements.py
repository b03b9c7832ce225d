"""What a test needs of the machine: without it the test is skipped, and fails where sandboxes are required.

`.ci/run` requires them, so that it never passes because nothing was tried.
"""

import os
from pathlib import Path
from typing import NoReturn

import pytest

VARIABLE = "TESTS_REQUIRE_SANDBOXES"
HAS_IPV6 = Path("/proc/net/if_inet6").exists()  # also of networks of their own


def give_up(reason: str) -> NoReturn:
    """Skip the test, or fail it where sandboxes are required."""
    if os.environ.get(VARIABLE):
        pytest.fail(f"{VARIABLE} is set, and {reason}")
    pytest.skip(reason)
