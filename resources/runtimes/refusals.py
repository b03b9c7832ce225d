"""The way out where a machine refuses to build a sandbox. Pure."""

import errno
import re

from resources.runtimes.seccomp import SeccompUnavailable
from resources.runtimes.zygote import SandboxRefused

_WAYS_OUT = {
    "namespaces": "allow user namespaces: 'sysctl user.max_user_namespaces=65536' and, on Debian and Ubuntu,"
    " 'sysctl kernel.unprivileged_userns_clone=1'; inside a container its seccomp profile must allow clone with new"
    " namespaces",
    "uid_map": "AppArmor may forbid it: 'sysctl kernel.apparmor_restrict_unprivileged_userns=0', or a profile with"
    " 'userns,' for the worker's Python; a /proc with hidepid forbids it, too",
    "proc": "/proc of this machine is masked, as in most containers: run the worker outside of one, or with"
    " procMount: Unmasked and hostUsers: false (Kubernetes), --security-opt unmask=ALL (Podman) or"
    " --security-opt systempaths=unconfined (Docker)",
    "tmpfs": "mounting is forbidden in user namespaces, perhaps by AppArmor:"
    " 'sysctl kernel.apparmor_restrict_unprivileged_userns=0'",
}
EXPOSED_PROGRAM = (
    "the file of this Python belongs to the worker's own user, does not run as a copy, and a step could change it (run"
    " the worker with a Python that belongs to root, or as root)"
)
_MISSING = "this kernel is built without it, or a seccomp profile hides it, as some containers do"
_PASSING = (errno.EAGAIN, errno.ENOMEM)
_FULL = "this machine, container or user has no more processes or memory for it: allow more, and restart the worker"
# From then on RLIMIT_NPROC counts the processes of a user namespace, not those of its user.
_OLDEST = (5, 14)


def way_out(error: SeccompUnavailable | SandboxRefused) -> str:
    """Return the reason why the level is not available, and what to do about it."""
    if not isinstance(error, SandboxRefused):
        return str(error)
    report = error.report
    if report.errno in (errno.ENOSYS, errno.EINVAL):
        return f"{error} ({_MISSING})"
    if is_passing(error):
        return f"{error} ({_FULL})"
    hint = _WAYS_OUT.get(report.step)
    return f"{error} ({hint})" if hint else str(error)


def old_kernel(release: str) -> str:
    """Return why a kernel of this release (`uname -r`) cannot keep the limits of a sandbox; empty if it can."""
    version = version_of(release)
    if version is not None and version >= _OLDEST:
        return ""
    problem = "is too old" if version else "does not tell its version"
    return (
        f"the kernel {release!r} {problem}: Linux 5.14 or newer is needed, since before it the processes of one run"
        " are counted with all others of its user (boot a newer kernel, or run the worker on a machine that has one)"
    )


def version_of(release: str) -> tuple[int, int] | None:
    """Return the first two numbers of a release; None if it does not begin with them."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})(?!\d)", release, re.ASCII)
    return (int(found[1]), int(found[2])) if found else None


def is_passing(error: SandboxRefused) -> bool:
    """Say whether the kernel may allow the same a moment later."""
    return error.report.errno in _PASSING
