"""The way out where a machine refuses to build a sandbox. Pure."""

import errno

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
_PASSING = (errno.EAGAIN, errno.ENOMEM)
_FULL = "this machine, container or user has no more processes or memory for it: allow more, and restart the worker"
_OLD_KERNEL = "the kernel is too old: Linux 5.14 or newer is needed"


def way_out(error: SeccompUnavailable | SandboxRefused) -> str:
    """Return the reason why the level is not available, and what to do about it."""
    if not isinstance(error, SandboxRefused):
        return str(error)
    report = error.report
    if report.errno in (errno.ENOSYS, errno.EINVAL):
        return f"{error} ({_OLD_KERNEL})"
    if is_passing(error):
        return f"{error} ({_FULL})"
    hint = _WAYS_OUT.get(report.step)
    return f"{error} ({hint})" if hint else str(error)


def is_passing(error: SandboxRefused) -> bool:
    """Say whether the kernel may allow the same a moment later."""
    return error.report.errno in _PASSING
