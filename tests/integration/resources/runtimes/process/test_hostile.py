"""Hostile steps at the level `process`: each is contained, ends in a structured error, and harms nobody.

All of them run in one process per account (`host`), which reports; each test looks at one part of the report.
"""

import json
import os
import pwd
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from isolane.results import Code
from isolane.sandbox import landlock
from isolane.sandbox.spec import Wall
from resources.runtimes.refusals import version_of
from tests.accounts import KINDS, ORDINARY, Account
from tests.integration.resources.runtimes.process.attacks import ATTACKS
from tests.integration.resources.runtimes.process.probes import PROBES
from tests.requirements import give_up

HOST = "tests.integration.resources.runtimes.process.host"
LOG_FRAMES = 1001  # 1000 lines, and the notice that more are dropped


class End(NamedTuple):
    """The end of a step."""

    code: Code
    text: str


RAM = End(Code.RAM_EXCEEDED, "the run used more RAM than its limit of 96 MB (ram_mb, ")
PROCESSES = End(Code.PROCESS_LIMIT, "the run started more than 32 processes and threads")
DISK = End(Code.DISK_FULL, "the run wrote more files than its limit of 16 MB (disk_mb, ")
DEADLINE = End(Code.TIMEOUT, "the step was ended at its deadline")
REFUSED = End(Code.UNKNOWN_ERROR, " in node hostile.attack")
PROCESSOR = End(Code.TIMEOUT, "a process used more CPU time than 0.2 cores give the run")
ENDS = {
    "fork_bomb": DEADLINE,
    "fork_until_refused": PROCESSES,
    "program_bomb": PROCESSES,
    "thread_bomb": PROCESSES,
    "ram_of_one_process": RAM,
    "ram_of_many_children": RAM,
    "ram_of_hidden_children": RAM,
    "ram_shared_by_fork": RAM,
    "ram_without_a_main_thread": RAM,
    "ram_shared": RAM,
    "ram_of_a_device": RAM,
    "ram_of_memfd": RAM,
    "ram_of_system_v": RAM,
    "ram_of_files": RAM,
    "ram_of_sockets": RAM,
    "disk_bytes": DISK,
    "disk_files": DISK,
    "disk_folders": DISK,
    "leave": End(Code.UNKNOWN_ERROR, "the runtime died (exit code 3)"),
    "leave_as_if_well": End(Code.UNKNOWN_ERROR, "the runtime died (exit code 0)"),
    "kill_itself": End(Code.UNKNOWN_ERROR, "the runtime died (signal SIGKILL)"),
    "crash": End(Code.UNKNOWN_ERROR, "the runtime died (signal SIGSEGV)"),
    "stop_itself": DEADLINE,
    "close_the_stream": End(Code.UNKNOWN_ERROR, "the runtime died"),
    "replace_the_stream": End(Code.UNKNOWN_ERROR, "the runtime died"),
    "send_a_descriptor": End(Code.POLICY_VIOLATION, "the runtime broke the protocol"),
    "write_garbage": End(Code.POLICY_VIOLATION, "the runtime broke the protocol"),
    "write_half_a_frame": DEADLINE,
    "burn_processor_time": DEADLINE,
    "burn_processor_time_and_ignore_the_signal": DEADLINE,
}
# Where no cgroup counts, such memory is refused, and each process has its time.
ENDS_WITHOUT_CGROUP = {
    "ram_shared": REFUSED,
    "ram_of_a_device": REFUSED,
    "ram_of_memfd": REFUSED,
    "ram_of_system_v": REFUSED,
    "burn_processor_time": PROCESSOR,
    "burn_processor_time_and_ignore_the_signal": PROCESSOR,
}
# The error tells the wall: another one would be refused by accident, or only for now.
ERRORS = {
    "connect_to_loopback_of_the_machine": "ECONNREFUSED",
    "connect_to_loopback_by_ipv6": "ECONNREFUSED",
    "datagram_to_the_machine": "ECONNREFUSED",
    "connect_to_abstract_socket": "ECONNREFUSED",
    "connect_elsewhere": "ENETUNREACH",
    "make_a_vsock": "EAFNOSUPPORT",
    "make_a_packet_socket": "EAFNOSUPPORT",
    "make_a_netlink_socket": "EAFNOSUPPORT",
    "make_a_crypto_socket": "EAFNOSUPPORT",
    "exceed_processes": "EAGAIN",
    "exceed_open_files": "EMFILE",
}
HARMLESS = [name for name in ATTACKS if name.startswith("harmless_")]
# The attacks that only this wall stops.
STOPPED_BY = {
    Wall.MOUNT: ["read_platform_secret", "read_etc_of_the_machine"],
    Wall.NET: ["connect_to_loopback_of_the_machine", "datagram_to_the_machine"],
    Wall.CAPABILITIES: ["hold_capabilities", "make_a_raw_socket"],
    Wall.LIMITS: ["exceed_processes", "exceed_open_files"],
    Wall.LANDLOCK: ["write_own_oom_score", "execute_a_file_of_its_own"],
    Wall.SECCOMP: [
        "make_a_netlink_socket",
        "make_a_vsock",
        "keyctl",
        "add_key",
        "io_uring",
        "bpf",
        "perf_event_open",
        "enter_namespace",
        "unshare_user",
        "clone_into_new_user",
        "clone_by_the_new_call",
        "lower_limits_of_the_guard",
        "schedule_the_guard_idle",
    ],
}


class Done(NamedTuple):
    """The end of a host, also of one that failed, so that it is not started again for each test."""

    code: int
    stdout: str
    stderr: str
    left: list[str]

    def told(self) -> Any:
        """Return what it printed."""
        assert self.code == 0, self.stderr
        assert not self.left
        return json.loads(self.stdout)


def asked(account: Account, interpreter: str, **parts: Any) -> Done:
    given = json.dumps({"probes": [], "attacks": [], "walls": {}, **parts})
    with account.home() as home:
        home.chmod(0o755)  # a sandbox of root's is another user's
        done = account.python(interpreter, "-m", HOST, given=given, TMPDIR=str(home))
        left = [path.name for path in home.iterdir()]
    return Done(done.returncode, done.stdout, done.stderr, left)


@cache
def attacked(kind: str) -> Done:
    """Attack once, in whatever order the tests run."""
    account = Account.of(kind)
    return asked(account, account.interpreter(), probes=list(PROBES), attacks=list(ATTACKS))


@pytest.fixture(params=KINDS)
def report(request: pytest.FixtureRequest) -> Any:
    return attacked(request.param).told()


@cache
def attacked_without_walls(kind: str) -> Done:
    """Make the attacks that a wall stops, without it."""
    account = Account.of(kind)
    # Without mounts of its own root's sandbox, which is another user's, enters the interpreter's folders as they are.
    user = Account(ORDINARY) if account.uid == 0 else account
    walls = {str(wall): names for wall, names in STOPPED_BY.items()}
    return asked(account, user.interpreter(), walls=walls)


@pytest.fixture(params=KINDS)
def weakened(request: pytest.FixtureRequest) -> Any:
    return attacked_without_walls(request.param).told()["weakened"]


def refused_by_the_machine(name: str) -> str:
    """Return why this machine refuses an attack even without a wall; empty if it does not."""
    if name == "io_uring" and _setting("kernel/io_uring_disabled") != "0":
        return "io_uring is switched off here"
    version = version_of(os.uname().release)
    if name == "bpf" and _setting("kernel/unprivileged_bpf_disabled") != "0":
        return "" if version and version >= (5, 19) else "this kernel has no bpf for ordinary users"
    return ""


def _setting(name: str) -> str:
    path = Path("/proc/sys") / name
    return path.read_text().strip() if path.exists() else "0"


@pytest.mark.parametrize("name", PROBES)
def test_a_way_out_is_closed(report: Any, name: str) -> None:
    told = report["probes"]
    assert told["status"] == "succeeded", told
    expected = f"refused {ERRORS.get(name, '')}"
    assert told["output"][name].startswith(expected), told["output"][name]


@pytest.mark.parametrize("name", ENDS)
def test_an_attack_ends_in_a_structured_error(report: Any, name: str) -> None:
    told = report["attacks"][name]
    end = ENDS[name]
    if not report["counted"]:
        end = ENDS_WITHOUT_CGROUP.get(name, end)
    assert (told["status"], told["code"]) == ("failed", end.code), told
    assert end.text in told["message"]


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_harmless_succeeds(report: Any, name: str) -> None:
    assert report["attacks"][name]["status"] == "succeeded", report["attacks"][name]


@pytest.mark.parametrize("name", ATTACKS)
def test_after_an_attack_another_tenant_runs(report: Any, name: str) -> None:
    assert report["attacks"][name]["after"] == "succeeded"


def test_the_neighbour_of_the_attacks_is_unharmed(report: Any) -> None:
    told = report["neighbour"]
    assert told["status"] == "succeeded", told
    assert told["output"] == {
        "beats": told["output"]["beats"],
        "token": "mine",
        "processes": 2,  # its guard and itself
    }
    assert told["output"]["beats"] > 0


def test_servers_of_the_machine_hear_nothing(report: Any) -> None:
    assert report["heard"] == []


def test_as_root_each_sandbox_is_a_user_of_its_own_outside(report: Any) -> None:
    users = report["users"]
    assert len(users) == 3
    if report["user"] != 0:
        assert users == [[report["user"]]] * 3
        return
    assert all(len(user) == 1 for user in users)
    found = {user for (user,) in users}
    assert len(found) == 3
    assert all(1 << 30 <= user < (1 << 30) + (1 << 26) for user in found)
    assert not found & {known.pw_uid for known in pwd.getpwall()}


def test_no_process_is_left(report: Any) -> None:
    assert report["left"] == []


def test_a_runner_has_its_stream_and_its_output_and_no_other_descriptor(report: Any) -> None:
    kinds = [target.partition(":")[0] for target in report["descriptors"]]
    assert kinds == ["/dev/null", *["pipe"] * 6]


def test_a_flood_of_output_is_cut(report: Any) -> None:
    assert report["attacks"]["harmless_flood_of_output"]["frames"] == LOG_FRAMES


def test_a_run_gets_no_more_processor_time_than_its_share(report: Any) -> None:
    told = report["attacks"]["burn_processor_time"]
    used = told["cpu_seconds"]
    if report["counted"]:
        # 0.2 cores for as long as it took, the period that had begun, and slices that the kernel had given out.
        assert 0 < used < 0.2 * (told["seconds"] + 0.1) + 0.1
    else:
        # A second for each of two processes, and as much again until they are killed if the signal comes late.
        assert 1.0 <= used < 5.0


@pytest.mark.parametrize(
    ("wall", "name"), [(w, n) for w, names in STOPPED_BY.items() for n in names]
)
def test_without_its_wall_the_attack_succeeds(weakened: Any, wall: Wall, name: str) -> None:
    if wall is Wall.LANDLOCK and landlock.abi() == 0:
        give_up("this kernel has no Landlock")
    if reason := refused_by_the_machine(name):
        give_up(reason)
    told = weakened[wall]
    assert told["status"] == "succeeded", told
    assert told["output"][name].startswith("done "), told["output"][name]


def test_every_attack_is_looked_at() -> None:
    assert {*ENDS, *HARMLESS} == set(ATTACKS)
    assert set(ENDS_WITHOUT_CGROUP) <= set(ENDS)


def test_every_wall_is_missed_by_an_attack() -> None:
    assert set(STOPPED_BY) == set(Wall)
