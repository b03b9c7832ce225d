"""isolane.sandbox.syscalls: the reasons of a set-up that failed."""

import errno

from isolane.sandbox.syscalls import SetupError


def test_a_reason_names_the_step_and_the_kernels_word() -> None:
    assert str(SetupError("proc", errno.EPERM)) == "proc: Operation not permitted"
    assert str(SetupError("proc", errno.EPERM, "mounting")) == "mounting: Operation not permitted"


def test_where_the_kernel_was_not_asked_it_has_no_word() -> None:
    assert str(SetupError("uid_map", 0, "no map was written")) == "no map was written"
