"""The system calls that a sandboxed runtime may not make, compiled for `isolane.sandbox.seccomp.load`.

Everything is allowed but what is refused here: Docker's default profile without any capability, and more where a step
needs less than a container. A filter sees numbers and arguments, no paths and no memory.

Timing: once in a worker, before its first sandboxed runtime; later calls return the same bytes.
Model: sync; loads a shared library and searches it by a short-lived process.
Guarantee: idempotent; the same bytes serve every runtime of this machine.
Failure: bubble, as an error that says what is missing.
"""

import errno
import os
import stat
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

REFUSED = (
    # Mounts: the file system that a runtime was given stays as it is. statmount and listmount show the others.
    "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr", "fsopen", "fsconfig",
    "fsmount", "fspick", "mount_setattr", "statmount", "listmount",
    # Namespaces: a new one gives all capabilities within it, and with them most of the kernel's bugs.
    "unshare", "setns", "sethostname", "setdomainname",
    # Files by handle: past every directory and mount on the way.
    "name_to_handle_at", "open_by_handle_at",
    # Other processes: their memory, descriptors and kernel objects.
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd",
    # Interfaces with a history of ways to become root, which no step needs.
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
    "fanotify_init", "lookup_dcookie",
    # Watches on files that are shown to others, too: they tell which programs other runs start.
    "inotify_init", "inotify_init1",
    # Keys: the kernel's key rings have no namespaces.
    "add_key", "request_key", "keyctl",
    # Placement of memory on the nodes of the machine, also that of other processes.
    "get_mempolicy", "set_mempolicy", "set_mempolicy_home_node", "mbind", "migrate_pages", "move_pages",
    # The machine: its clock, modules, kernel, swap, accounting, quotas, log, ports and terminals.
    "clock_settime", "clock_adjtime", "settimeofday",
    "init_module", "finit_module", "delete_module", "create_module", "query_module", "get_kernel_syms",
    "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog",
    "ioperm", "iopl", "vhangup",
    # Other security modules: their rules for this process.
    "lsm_get_self_attr", "lsm_set_self_attr", "lsm_list_modules",
    # Long obsolete.
    "_sysctl", "nfsservctl", "sysfs", "uselib", "ustat",
)  # fmt: skip

# Calls that an older libseccomp does not know by name. From 424 on all architectures share their numbers.
NUMBERS = {
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "memfd_secret": 447,
    "set_mempolicy_home_node": 450,
    "statmount": 457,
    "listmount": 458,
    "lsm_get_self_attr": 459,
    "lsm_set_self_attr": 460,
    "lsm_list_modules": 461,
    "open_tree_attr": 467,
}

# Memory that no process has mapped: refused where only the memory of processes and files is counted. Programs go on
# without it, as on an older kernel.
UNCOUNTED = ("memfd_create", "memfd_secret", "shmget", "semget", "msgget")

# No filter can read the flags of clone3, which lie in memory. As if it did not exist, so that glibc takes clone.
ABSENT = ("clone3",)

# Calls that came after this list, and those that will come: they do not exist here until somebody has judged them, and
# programs fall back as on an older kernel. The range ends behind 512 to 547, by which old kernels let x32 calls in.
UNJUDGED = range(468, 548)

# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. clone() cannot make a time namespace.
_NEW_NAMESPACES = (1 << 17, 1 << 25, 1 << 26, 1 << 27, 1 << 28, 1 << 29, 1 << 30)
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX write what its owner seems to have typed
_FILE_TYPE = 0o170000
_GUARD = 1
_IOPRIO_WHO_USER = 3
_LEASES = (1024, 1026)  # F_SETLEASE and F_NOTIFY: others who use the file would wait, or be watched
_MAP_SHARED_ANONYMOUS = 0x21
_MAP_HUGETLB = 0x40000
_RLIMIT_CORE = 4
_UNSIGNED_INT = 0xFFFFFFFF  # the kernel reads no more bits of this argument


class SeccompUnavailable(RuntimeError):
    """The filter cannot be compiled on this machine; the text says what is missing."""


class Rule(NamedTuple):
    """One refusal: a call with an argument that compares like this, as libseccomp's `SCMP_CMP_...` does."""

    call: str
    argument: int
    operator: str
    values: tuple[int, ...]
    error: int = errno.EPERM
    also: tuple[int, str, tuple[int, ...]] | None = None  # another argument that must compare, too


def _families(call: str) -> tuple[Rule, ...]:
    """Refuse every family but AF_UNIX (1), AF_INET (2) and AF_INET6 (10): among others netlink, packet and vsock."""
    comparisons = [("LT", 1), *(("EQ", family) for family in range(3, 10)), ("GT", 10)]
    return tuple(Rule(call, 0, how, (value,), errno.EAFNOSUPPORT) for how, value in comparisons)


RULES = (
    *(Rule("clone", 0, "MASKED_EQ", (flag, flag)) for flag in _NEW_NAMESPACES),
    *_families("socket"),
    *_families("socketpair"),
    *(Rule("ioctl", 1, "MASKED_EQ", (_UNSIGNED_INT, command)) for command in _TERMINAL_INPUT),
    *(
        Rule(call, argument, "MASKED_EQ", (_FILE_TYPE, device))
        for call, argument in (("mknod", 1), ("mknodat", 2))
        for device in (stat.S_IFCHR, stat.S_IFBLK)
    ),
    # The guard, which is process 1: a step could starve it or make it fail.
    *(
        Rule(call, argument, "MASKED_EQ", (_UNSIGNED_INT, _GUARD))
        for call, argument in (
            ("prlimit64", 0),
            ("setpriority", 1),
            ("ioprio_set", 1),
            ("sched_setaffinity", 0),
            ("sched_setattr", 0),
            ("sched_setparam", 0),
            ("sched_setscheduler", 0),
        )
    ),
    # All processes of the user, the guard among them.
    Rule("setpriority", 0, "MASKED_EQ", (_UNSIGNED_INT, os.PRIO_USER)),
    Rule("ioprio_set", 0, "MASKED_EQ", (_UNSIGNED_INT, _IOPRIO_WHO_USER)),
    *(Rule("fcntl", 1, "MASKED_EQ", (_UNSIGNED_INT, command)) for command in _LEASES),
    # The machine's large pages, which no limit counts.
    Rule("mmap", 3, "MASKED_EQ", (_MAP_HUGETLB, _MAP_HUGETLB)),
    # The limit of core dumps: with any but the one that was set, a crash may be handed to a program of the machine.
    Rule("setrlimit", 0, "MASKED_EQ", (_UNSIGNED_INT, _RLIMIT_CORE)),
    Rule("prlimit64", 1, "MASKED_EQ", (_UNSIGNED_INT, _RLIMIT_CORE), also=(2, "NE", (0,))),
    # Other values switch address randomisation off or make all readable memory executable.
    Rule("personality", 0, "NE", (0,)),
)
# Memory that stays when no process has mapped it any more, or only a part of it.
UNCOUNTED_RULE = Rule("mmap", 3, "MASKED_EQ", (_MAP_SHARED_ANONYMOUS, _MAP_SHARED_ANONYMOUS))


@cache
def compile_policy(*, counted: bool = True) -> bytes:
    """Return the filter as BPF instructions, or raise SeccompUnavailable.

    Unless all memory of a run is `counted`, as a cgroup does, what only the kernel knows is refused.
    """
    library = _load_library()
    if library.system_arch() not in (library.Arch.X86_64, library.Arch.AARCH64):
        raise SeccompUnavailable(
            "the filter for system calls is written for x86_64 and aarch64 only: run this worker on one of"
            " them, or offer another isolation level"
        )
    try:
        if counted:
            return _export(_filter(library, (), RULES))
        return _export(_filter(library, UNCOUNTED, (*RULES, UNCOUNTED_RULE)))
    except OSError as error:
        raise SeccompUnavailable(
            f"libseccomp does not compile the filter for system calls: {error}; install version 2.5 or newer"
        ) from error


def _load_library() -> Any:
    """Import pyseccomp, which loads the shared library at once."""
    try:
        import pyseccomp  # noqa: PLC0415 - its import does I/O
    except (RuntimeError, OSError) as error:
        raise SeccompUnavailable(
            "libseccomp.so.2 is not installed, which compiles the filter for system calls: apt install libseccomp2"
            " (on Fedora: dnf install libseccomp)"
        ) from error
    return pyseccomp


def _filter(library: Any, uncounted: Sequence[str], rules: Sequence[Rule]) -> Any:
    """Build the policy; calls of other architectures, 32-bit and x32 ones, kill the process that makes them."""
    policy = library.SyscallFilter(library.ALLOW)
    policy.set_attr(library.Attr.ACT_BADARCH, library.KILL_PROCESS)
    for number in _numbers(library, *REFUSED):
        policy.add_rule(library.ERRNO(errno.EPERM), number)
    for number in (*_numbers(library, *ABSENT, *uncounted), *UNJUDGED):
        policy.add_rule(library.ERRNO(errno.ENOSYS), number)
    for rule in rules:
        for number in _numbers(library, rule.call):
            policy.add_rule(library.ERRNO(rule.error), number, *_conditions(library, rule))
    return policy


def _conditions(library: Any, rule: Rule) -> list[Any]:
    compared = [(rule.argument, rule.operator, rule.values), *([rule.also] if rule.also else ())]
    return [
        library.Arg(argument, getattr(library, operator), *values)
        for argument, operator, values in compared
    ]


def _numbers(library: Any, *names: str) -> list[int]:
    """Return the numbers of those calls that this architecture has: the others resolve to less than -1."""
    found = {name: library.resolve_syscall(library.system_arch(), name) for name in names}
    found |= {name: NUMBERS.get(name, -1) for name, number in found.items() if number == -1}
    if unknown := [name for name, number in found.items() if number == -1]:
        raise SeccompUnavailable(
            f"libseccomp does not know the system calls {', '.join(unknown)}: install version 2.5 or newer"
        )
    return [number for number in found.values() if number >= 0]


def _export(policy: Any) -> bytes:
    with os.fdopen(os.memfd_create("seccomp"), "r+b") as file:
        policy.export_bpf(file)
        file.seek(0)
        return file.read()
