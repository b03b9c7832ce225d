"""Attempts of a step to leave its sandbox, each by one call: it raises OSError if it was refused.

They are safe where a wall is missing: what then succeeds changes nothing outside of the sandbox. Some calls are made
with arguments that no kernel takes; then any answer of the kernel's own counts as a success.
"""

import ctypes
import errno
import os
import platform
import resource
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

Facts = dict[str, Any]  # of the machine, for example the address of a socket of its platform
Probe = Callable[[Facts], Any]

_LIBC = ctypes.CDLL(None, use_errno=True)
_NUMBERS = {  # of x86_64 and aarch64
    "bpf": (321, 280), "keyctl": (250, 219), "add_key": (248, 217), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "clone": (56, 220), "pivot_root": (155, 41),
    "open_by_handle_at": (304, 265), "finit_module": (313, 273), "clone3": (435, 435), "unshare": (272, 97),
    "setns": (308, 268),
}  # fmt: skip
NEWUSER, NEWNS, NEWNET = 0x10000000, 0x00020000, 0x40000000
GUARD = 1
AF_ALG = 38
TMPFS_FLAGS, DETACH = 0, 2
BPF_MAP_LOOKUP_ELEM = 1
KEYCTL_GET_KEYRING_ID, SESSION_KEYRING = 0, -3
PTRACE_TRACEME, PTRACE_SEIZE = 0, 0x4206
SIGCHLD = 17
CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


def _check(returned: int) -> int:
    if returned < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return returned


def _raw(name: str, *arguments: int) -> int:
    number = _NUMBERS[name][platform.machine() == "aarch64"]
    longs = [ctypes.c_long(argument) for argument in arguments]
    return _check(_LIBC.syscall(ctypes.c_long(number), *longs))


def _reach(name: str, *arguments: int, refusal: int = errno.EPERM) -> str:
    """Raise only if the filter refuses the call, before the kernel has looked at its arguments."""
    try:
        return f"{_raw(name, *arguments)}"
    except OSError as error:
        if error.errno == refusal:
            raise
        return f"the kernel's own answer {errno.errorcode[error.errno or 0]}"


def _read(path: str) -> str:
    with Path(path).open("rb") as file:
        return file.read(64).decode(errors="replace")


def _list(path: str | Path) -> list[str]:
    return [found.name for found in Path(path).iterdir()]


def _write(path: str, text: str) -> None:
    with Path(path).open("r+b", buffering=0) as file:
        file.write(text.encode())


def _append(path: str) -> None:
    """Open only: nothing is changed if it works."""
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND))


def _create(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    Path(path).unlink()


def _connect(family: int, address: Any, kind: int = socket.SOCK_STREAM) -> str:
    with socket.socket(family, kind) as sock:
        sock.settimeout(2)
        sock.connect(address)
        sock.send(b"hello")
        return sock.recv(64).decode()


def _socket(family: int, kind: int = socket.SOCK_RAW) -> None:
    socket.socket(family, kind).close()


def _execute_from_tmp(_: Facts) -> bytes:
    script = Path("/tmp/own-program")
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o755)
    return subprocess.run([script], capture_output=True, check=True).stdout


def _raise_limit(which: int) -> None:
    _, hard = resource.getrlimit(which)
    _set_limit(0, which, hard + 1)


def _set_limit(pid: int, which: int, value: int) -> None:
    pair = (ctypes.c_uint64 * 2)(value, value)
    _check(_LIBC.prlimit64(pid, which, ctypes.byref(pair), None))


def _enter_namespace(_: Facts) -> str:
    descriptor = os.open("/proc/self/ns/user", os.O_RDONLY)
    try:
        return _reach("setns", descriptor, 0)
    finally:
        os.close(descriptor)


def _io_uring(_: Facts) -> str:
    parameters = (ctypes.c_uint32 * 30)()
    return _reach("io_uring_setup", 1, ctypes.addressof(parameters))


def _clone_user(_: Facts) -> None:
    if _raw("clone", NEWUSER | SIGCHLD, 0, 0, 0, 0) == 0:
        os._exit(0)


def _take_capabilities(_: Facts) -> None:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)(*([1 << 21] * 3), 0, 0, 0)  # CAP_SYS_ADMIN
    _check(_LIBC.capset(header, sets))


def _read_guard_memory(_: Facts) -> None:
    area = (ctypes.c_void_p * 2)(0, 1)
    _check(_LIBC.process_vm_readv(GUARD, area, 1, area, 1, 0))


def _mount(_: Facts) -> None:
    _check(_LIBC.mount(b"tmpfs", b"/tmp", b"tmpfs", TMPFS_FLAGS, b""))


def _guard_idle(_: Facts) -> None:
    os.sched_setscheduler(GUARD, os.SCHED_IDLE, os.sched_param(0))


def _realtime(_: Facts) -> None:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def _refused(condition: bool, what: str) -> str:
    """Raise if what the attacker hoped for is not so."""
    if not condition:
        raise OSError(errno.ENOENT, what)
    return what


def _foreign_processes(_: Facts) -> str:
    shown = sorted(int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())
    own = {1, os.getpid(), os.getppid()}
    return _refused(bool(set(shown) - own), f"processes {shown[:20]}")


def _capabilities(_: Facts) -> str:
    status = _status()
    held = [name for name in CAPABILITIES if int(status[name], 16)]
    return _refused(bool(held), f"capabilities {held}")


def _new_privileges(_: Facts) -> str:
    return _refused(_status()["NoNewPrivs"] == "0", "a program may get more rights")


def _status() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def _many_processes(facts: Facts) -> str:
    """Start some more than the limit and no more, whatever the sandbox allows."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        while len(started) < int(facts["processes"]) + 8:
            started.append(subprocess.Popen(["/bin/sleep", "30"]))
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()
    return f"{len(started)} processes"


def _many_files(facts: Facts) -> str:
    opened: list[int] = []
    try:
        while len(opened) < int(facts["open_files"]) + 8:
            opened.append(os.open("/dev/null", os.O_RDONLY))
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return f"{len(opened)} files"


PROBES: dict[str, Probe] = {
    # --- files
    "read_shadow": lambda _: _read("/etc/shadow"),
    "read_etc_of_the_machine": lambda _: _read("/etc/hostname"),
    "read_home_of_root": lambda _: _read("/root/.profile"),
    "read_sys": lambda _: _list("/sys"),
    "read_dev_mem": lambda _: _read("/dev/mem"),
    "read_kernel_memory": lambda _: _read("/proc/kcore"),
    "read_platform_secret": lambda facts: _read(facts["secret"]),
    "list_platform_folder": lambda facts: _list(Path(facts["secret"]).parent),
    "read_platform_source": lambda facts: _read(facts["source"]),
    "read_folder_of_another_run": lambda facts: _read(facts["other_run"]),
    "read_environ_of_the_worker": lambda facts: _read(f"/proc/{facts['worker']}/environ"),
    "see_foreign_processes": _foreign_processes,
    "write_the_view": lambda _: _append(os.__file__),
    "create_in_the_view": lambda _: _create(f"{os.__file__}.evil"),
    "write_etc": lambda _: _append("/etc/passwd"),
    "create_in_the_root": lambda _: _create("/evil"),
    "write_proc_sys": lambda _: _append("/proc/sys/kernel/hostname"),
    "write_proc_sys_net": lambda _: _append("/proc/sys/net/ipv4/ip_forward"),
    "write_sysrq": lambda _: _append("/proc/sysrq-trigger"),
    "write_own_oom_score": lambda _: _write("/proc/self/oom_score_adj", "0"),
    "write_own_name": lambda _: _write("/proc/self/comm", "worker"),
    "write_own_memory": lambda _: _append("/proc/self/mem"),
    "write_own_uid_map": lambda _: _append("/proc/self/uid_map"),
    "execute_a_file_of_its_own": _execute_from_tmp,
    "make_a_device": lambda _: os.mknod("/tmp/mem", 0o600 | stat.S_IFCHR, os.makedev(1, 1)),
    "open_by_handle": lambda _: _reach("open_by_handle_at", -1, 0, 0),
    # --- the guard and other processes
    "read_environ_of_the_guard": lambda _: _read(f"/proc/{GUARD}/environ"),
    "read_mem_of_the_guard": lambda _: _read(f"/proc/{GUARD}/mem"),
    "read_maps_of_the_guard": lambda _: _read(f"/proc/{GUARD}/maps"),
    "read_descriptors_of_the_guard": lambda _: _list(f"/proc/{GUARD}/fd"),
    "read_memory_of_the_guard": _read_guard_memory,
    "trace_the_guard": lambda _: _check(_LIBC.ptrace(PTRACE_SEIZE, GUARD, 0, 0)),
    "be_traced": lambda _: _check(_LIBC.ptrace(PTRACE_TRACEME, 0, 0, 0)),
    "lower_limits_of_the_guard": lambda _: _set_limit(GUARD, resource.RLIMIT_CORE, 0),
    "renice_the_guard": lambda _: os.setpriority(os.PRIO_PROCESS, GUARD, 19),
    "renice_all_of_the_user": lambda _: os.setpriority(os.PRIO_USER, 0, 19),
    "schedule_the_guard_idle": _guard_idle,
    "pin_the_guard": lambda _: os.sched_setaffinity(GUARD, os.sched_getaffinity(GUARD)),
    # --- network
    "connect_to_loopback_of_the_machine": lambda facts: _connect(
        socket.AF_INET, ("127.0.0.1", facts["tcp"])
    ),
    "connect_to_loopback_by_ipv6": lambda facts: _connect(
        socket.AF_INET6, ("::ffff:127.0.0.1", facts["tcp"])
    ),
    "datagram_to_the_machine": lambda facts: _connect(
        socket.AF_INET, ("127.0.0.1", facts["udp"]), socket.SOCK_DGRAM
    ),
    "connect_to_socket_of_the_platform": lambda facts: _connect(socket.AF_UNIX, facts["unix"]),
    "connect_to_abstract_socket": lambda facts: _connect(socket.AF_UNIX, "\0" + facts["abstract"]),
    "connect_elsewhere": lambda _: _connect(socket.AF_INET, ("192.0.2.1", 80)),
    "make_a_vsock": lambda _: _socket(socket.AF_VSOCK, socket.SOCK_STREAM),
    "make_a_packet_socket": lambda _: _socket(socket.AF_PACKET),
    "make_a_netlink_socket": lambda _: _socket(socket.AF_NETLINK),
    "make_a_crypto_socket": lambda _: _socket(AF_ALG, socket.SOCK_SEQPACKET),
    "make_a_raw_socket": lambda _: socket.socket(
        socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP
    ).close(),
    # --- rights
    "hold_capabilities": _capabilities,
    "get_new_privileges": _new_privileges,
    "take_capabilities": _take_capabilities,
    "become_root": lambda _: os.setuid(0),
    "become_group_of_root": lambda _: os.setgid(0),
    "drop_groups": lambda _: os.setgroups([]),
    "raise_limit_of_files": lambda _: _raise_limit(resource.RLIMIT_NOFILE),
    "raise_limit_of_cores": lambda _: _raise_limit(resource.RLIMIT_CORE),
    "exceed_processes": _many_processes,
    "exceed_open_files": _many_files,
    "get_better_priority": lambda _: os.setpriority(os.PRIO_PROCESS, 0, -10),
    "get_realtime": _realtime,
    "mount": _mount,
    "unmount_proc": lambda _: _check(_LIBC.umount2(b"/proc", DETACH)),
    "pivot_root": lambda _: _raw("pivot_root", 0, 0),
    "change_root": lambda _: os.chroot("/tmp"),
    "unshare_user": lambda _: _reach("unshare", NEWUSER),
    "unshare_mounts": lambda _: _check(_LIBC.unshare(NEWNS)),
    "unshare_net": lambda _: _check(_LIBC.unshare(NEWNET)),
    "enter_namespace": _enter_namespace,
    "clone_into_new_user": _clone_user,
    "clone_by_the_new_call": lambda _: _reach("clone3", 0, 0, refusal=errno.ENOSYS),
    "set_host_name": lambda _: socket.sethostname("evil"),
    "io_uring": _io_uring,
    "bpf": lambda _: _reach("bpf", BPF_MAP_LOOKUP_ELEM, 0, 0),
    "keyctl": lambda _: _raw("keyctl", KEYCTL_GET_KEYRING_ID, SESSION_KEYRING, 0),
    "add_key": lambda _: _reach("add_key", 0, 0, 0, 0, 0),
    "perf_event_open": lambda _: _reach("perf_event_open", 0, 0, -1, -1, 0),
    "userfaultfd": lambda _: _raw("userfaultfd", 1),
    "load_a_module": lambda _: _reach("finit_module", -1, 0, 0),
}


def outcome(probe: Probe, facts: Facts) -> str:
    """Return `refused` with the name of the error, or what it got."""
    try:
        got = probe(facts)
    except OSError as error:
        return f"refused {errno.errorcode.get(error.errno or 0, error)}"
    return f"done {got!r}"[:200]
