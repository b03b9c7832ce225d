"""resources.runtimes.refusals: the reason why a machine does not give a level, and what to do about it."""

import errno

import pytest

from isolane.sandbox.report import ExitReport
from resources.runtimes.refusals import way_out
from resources.runtimes.seccomp import SeccompUnavailable
from resources.runtimes.zygote import SandboxRefused


@pytest.mark.parametrize(
    ("step", "number", "hint"),
    [
        ("namespaces", errno.EPERM, "user.max_user_namespaces"),
        ("uid_map", errno.EPERM, "apparmor_restrict_unprivileged_userns"),
        ("proc", errno.EPERM, "procMount: Unmasked"),
        ("tmpfs", errno.EACCES, "apparmor_restrict_unprivileged_userns"),
        ("namespaces", errno.EINVAL, "Linux 5.14"),
        ("other", errno.ENOSYS, "Linux 5.14"),
        ("namespaces", errno.EAGAIN, "no more processes"),
        ("tmpfs", errno.ENOMEM, "no more processes or memory"),
    ],
)
def test_a_refused_step_has_a_way_out(step: str, number: int, hint: str) -> None:
    reason = way_out(SandboxRefused(ExitReport(step=step, errno=number, reason="mounting it")))
    assert reason.startswith("the sandbox cannot be built: mounting it (")
    assert hint in reason


def test_what_nobody_knows_is_said_as_it_is() -> None:
    refused = SandboxRefused(ExitReport(step="other", errno=errno.EIO, reason="mounting it"))
    assert way_out(refused) == "the sandbox cannot be built: mounting it"
    assert way_out(SeccompUnavailable("no zygote")) == "no zygote"
