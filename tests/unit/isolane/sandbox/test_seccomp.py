"""Filters that the kernel is not even asked about."""

import errno

import pytest

from isolane.sandbox import seccomp


@pytest.mark.parametrize(
    "program", [b"", b"1234567", b"x" * 8 * 4097], ids=["none", "part", "many"]
)
def test_what_is_no_filter_is_refused(program: bytes) -> None:
    with pytest.raises(OSError, match="no filter of 1 to 4096 instructions") as refused:
        seccomp.load(program)
    assert refused.value.errno == errno.EINVAL
