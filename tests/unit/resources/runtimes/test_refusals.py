"""resources.runtimes.refusals: the reason why a machine does not give a level, and what to do about it."""

import errno

import pytest

from isolane.sandbox.report import ExitReport
from resources.runtimes.refusals import old_kernel, way_out
from resources.runtimes.seccomp import SeccompUnavailable
from resources.runtimes.zygote import SandboxRefused


@pytest.mark.parametrize(
    ("step", "number", "hint"),
    [
        ("namespaces", errno.EPERM, "user.max_user_namespaces"),
        ("uid_map", errno.EPERM, "apparmor_restrict_unprivileged_userns"),
        ("proc", errno.EPERM, "procMount: Unmasked"),
        ("tmpfs", errno.EACCES, "apparmor_restrict_unprivileged_userns"),
        ("namespaces", errno.EINVAL, "built without it"),
        ("other", errno.ENOSYS, "a seccomp profile"),
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


@pytest.mark.parametrize(
    "release",
    [
        "5.14.0", "5.14.0-427.13.1.el9_4.x86_64", "5.15.90.1-microsoft-standard-WSL2", "5.100", "6.1+", "6.0-rc1",
        "6.18.44-fc-v509", "10.2.0", "5.14-",
    ],
)  # fmt: skip
def test_a_kernel_from_5_14_on_is_new_enough(release: str) -> None:
    assert old_kernel(release) == ""


@pytest.mark.parametrize(
    "release",
    ["5.13.19-generic", "5.4.0-216-generic", "5.1", "4.18.0-553.el8", "4.100.0", "2.6.60+"],
)
def test_an_older_one_is_refused_with_a_way_out(release: str) -> None:
    assert old_kernel(release) == (
        f"the kernel '{release}' is too old: Linux 5.14 or newer is needed, since before it the processes of one run"
        " are counted with all others of its user (boot a newer kernel, or run the worker on a machine that has one)"
    )


@pytest.mark.parametrize("release", ["", "6", "v6.1.0", "6.x", "linux-6.1", "6.12345678"])
def test_one_that_does_not_tell_its_version_is_refused(release: str) -> None:
    assert f"the kernel {release!r} does not tell its version: Linux 5.14" in old_kernel(release)
