"""The compiled filter, loaded for real: what it refuses, what goes on, and that nothing else refuses."""

import ctypes.util
import json
import platform
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resources.runtimes.seccomp import (
    REFUSED,
    UNJUDGED,
    SeccompUnavailable,
    compile_policy,
)
from tests.accounts import KINDS, Account

PROBE = "tests.integration.resources.runtimes.system_calls"
CAP_SYS_ADMIN = 1 << 21
# From the kernel's include/uapi/asm-generic/unistd.h, for a library that is older.
KERNELS_NUMBERS = {
    "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443, "set_mempolicy_home_node": 450,
    "statmount": 457, "listmount": 458, "lsm_get_self_attr": 459, "lsm_set_self_attr": 460, "lsm_list_modules": 461,
    "open_tree_attr": 467,
}  # fmt: skip
BY_ARGUMENT = {
    "clone", "socket", "socketpair", "ioctl", "mknod", "mknodat", "personality", "fcntl", "mmap", "prlimit64",
    "setrlimit",
}  # fmt: skip
FAMILIES = {"1", "2", "10"}  # AF_UNIX, AF_INET, AF_INET6
# Refused to ordinary users by some kernels or all, whatever the arguments: only as root is the filter's answer its own.
FOR_ROOT = frozenset({
    "acct", "bpf", "delete_module", "fanotify_init", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick",
    "init_module", "io_uring_setup", "ioperm", "iopl", "kexec_file_load", "kexec_load", "lookup_dcookie", "move_mount",
    "open_by_handle_at", "perf_event_open", "pivot_root", "quotactl", "reboot", "setdomainname", "sethostname",
    "swapoff", "swapon", "syslog", "umount2", "userfaultfd", "vhangup",
})  # fmt: skip


@pytest.fixture(params=KINDS)
def account(request: pytest.FixtureRequest) -> Account:
    return Account.of(request.param)


@pytest.fixture
def home(account: Account) -> Iterator[Path]:
    with account.home() as path:
        yield path


def numbers_of(names: set[str]) -> dict[str, int]:
    """Look the numbers of this machine's calls up; what it does not have is left out."""
    import pyseccomp

    native = pyseccomp.system_arch()
    found = {name: pyseccomp.resolve_syscall(native, name) for name in sorted(names)}
    found |= {name: KERNELS_NUMBERS[name] for name, number in found.items() if number == -1}
    return {name: number for name, number in found.items() if number >= 0}


def probe(account: Account, home: Path, act: str, *, filtered: bool, counted: bool = True) -> Any:
    asked = {
        "program": compile_policy(counted=counted).hex() if filtered else "",
        "act": act,
        "numbers": {
            "refused": numbers_of(set(REFUSED)),
            "others": numbers_of(BY_ARGUMENT | {"clone3"}),
        },
        "unjudged": list(UNJUDGED),
    }
    return account.python(
        account.interpreter(), "-m", PROBE, given=json.dumps(asked), TMPDIR=str(home)
    )


def seen(account: Account, home: Path, *, filtered: bool, counted: bool = True) -> Any:
    done = probe(account, home, "look", filtered=filtered, counted=counted)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_call_of_the_list_is_refused(account: Account, home: Path) -> None:
    found = seen(account, home, filtered=True)
    assert len(found["calls"]) > 50
    assert {name for name, answer in found["calls"].items() if answer != "EPERM"} == set()
    assert found["clone3"] == "ENOSYS"
    assert set(found["unjudged"].values()) == {"ENOSYS"}
    assert set(found["arguments"].values()) == {"EPERM"}
    assert found["usual personality"] == found["limit of core dumps"] == "ok"


def test_without_the_filter_the_same_calls_are_not_refused(account: Account, home: Path) -> None:
    """So the filter, and nothing else, answers in the test above."""
    found = seen(account, home, filtered=False)
    refused = {name for name, answer in found["calls"].items() if answer == "EPERM"}
    is_root = int(found["capabilities"], 16) & CAP_SYS_ADMIN
    assert refused <= (set() if is_root else FOR_ROOT)
    assert found["clone3"] not in {"ENOSYS", "ok"}
    assert "EPERM" not in found["arguments"].values()
    assert found["arguments"]["no randomisation"] == "ok"


@pytest.mark.parametrize("counted", [True, False])
def test_memory_that_nobody_counts_is_refused(account: Account, home: Path, counted: bool) -> None:
    found = seen(account, home, filtered=True, counted=counted)
    kernels = "EINVAL"  # none at all is asked for
    assert found["shared memory"] == (kernels if counted else "EPERM")
    assert found["private memory"] == kernels


def test_no_new_namespace_and_no_foreign_socket(account: Account, home: Path) -> None:
    found = seen(account, home, filtered=True)
    assert found["clone"].pop("none") == "EINVAL"  # of the kernel: the filter lets it through
    assert set(found["clone"].values()) == {"EPERM"}
    for call in ("socket", "socketpair"):
        let_through = {name for name, answer in found[call].items() if answer != "EAFNOSUPPORT"}
        assert let_through == FAMILIES
    assert found["vsock"] == found["netlink"] == "EAFNOSUPPORT"


def test_without_the_filter_namespaces_and_sockets_reach_the_kernel(
    account: Account, home: Path
) -> None:
    found = seen(account, home, filtered=False)
    assert set(found["clone"].values()) == {"EINVAL"}
    for call in ("socket", "socketpair"):
        assert {found[call][family] for family in ("16", "netlink with a high bit")} == {"EINVAL"}
    assert found["netlink"] == "ok"


def test_a_call_newer_than_the_list_does_not_exist(account: Account, home: Path) -> None:
    unfiltered = seen(account, home, filtered=False)["unjudged"]
    known = {number for number, answer in unfiltered.items() if answer != "ENOSYS"}
    if not known:
        pytest.skip("this kernel has no call that is newer than the list")
    filtered = seen(account, home, filtered=True)["unjudged"]
    assert {filtered[number] for number in known} == {"ENOSYS"}


@pytest.mark.parametrize(("filtered", "counted"), [(True, True), (True, False), (False, True)])
def test_ordinary_work_goes_on(account: Account, home: Path, filtered: bool, counted: bool) -> None:
    done = probe(account, home, "everyday", filtered=filtered, counted=counted)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ({} if counted else {"memory": "EPERM"})


@pytest.mark.skipif(platform.machine() != "x86_64", reason="machine code of x86_64")
@pytest.mark.parametrize("kind", ["x32", "i386"])
def test_calls_of_another_architecture_kill(account: Account, home: Path, kind: str) -> None:
    assert probe(account, home, kind, filtered=True).returncode == -signal.SIGSYS
    # Without the filter the kernel answers, or ends the process because it has no such calls.
    unfiltered = probe(account, home, kind, filtered=False).returncode
    assert unfiltered in {0, -signal.SIGSEGV}


def test_it_is_compiled_once() -> None:
    assert compile_policy() is compile_policy()
    assert 100 < len(compile_policy()) // 8 < 1000


def test_without_the_library_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_policy.cache_clear()
    monkeypatch.delitem(sys.modules, "pyseccomp", raising=False)
    find = ctypes.util.find_library
    monkeypatch.setattr(
        ctypes.util, "find_library", lambda name: None if name == "seccomp" else find(name)
    )
    with pytest.raises(SeccompUnavailable, match=r"libseccomp\.so\.2 .* apt install libseccomp2"):
        compile_policy()
