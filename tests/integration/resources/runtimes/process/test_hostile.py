"""Hostile steps at the level `process`: each is contained, ends in a structured error, and harms nobody.

All of them run in one process per account (`host`), which reports; each test looks at one part of the report.
"""

import json
from functools import cache
from typing import Any, NamedTuple

import pytest

from isolane.results import Code
from isolane.sandbox import landlock
from isolane.sandbox.spec import Wall
from tests.accounts import KINDS, Account
from tests.integration.resources.runtimes.process.attacks import ATTACKS
from tests.integration.resources.runtimes.process.probes import PROBES

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
REFUSED = End(Code.UNKNOWN_ERROR, "OSError in node hostile.attack")
PROCESSOR = End(Code.TIMEOUT, "a process used more CPU time than 0.5 cores give the run")
ENDS = {
    "fork_bomb": DEADLINE,
    "fork_until_refused": PROCESSES,
    "program_bomb": PROCESSES,
    "thread_bomb": PROCESSES,
    "ram_of_one_process": RAM,
    "ram_of_many_children": RAM,
    "ram_of_hidden_children": RAM,
    "ram_shared": RAM,
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
    "shut_the_stream": End(Code.UNKNOWN_ERROR, "the runtime died"),
    "write_garbage": End(Code.POLICY_VIOLATION, "the runtime broke the protocol"),
    "write_half_a_frame": DEADLINE,
    "burn_processor_time": DEADLINE,
    "burn_processor_time_and_ignore_the_signal": DEADLINE,
}
# Where no cgroup counts, such memory is refused, and each process has its time.
ENDS_WITHOUT_CGROUP = {
    "ram_of_memfd": REFUSED,
    "ram_of_system_v": REFUSED,
    "burn_processor_time": PROCESSOR,
    "burn_processor_time_and_ignore_the_signal": PROCESSOR,
}
HARMLESS = [name for name in ATTACKS if name.startswith("harmless_")]
# The attacks that only this wall stops.
STOPPED_BY = {
    Wall.MOUNT: ["read_platform_secret", "read_etc_of_the_machine"],
    Wall.NET: ["connect_to_loopback_of_the_machine", "datagram_to_the_machine"],
    Wall.CAPABILITIES: ["hold_capabilities", "make_a_raw_socket"],
    Wall.RLIMITS: ["exceed_processes", "exceed_open_files"],
    Wall.LANDLOCK: ["write_own_oom_score", "execute_a_file_of_its_own"],
    Wall.SECCOMP: [
        "make_a_netlink_socket",
        "make_a_vsock",
        "keyctl",
        "lower_limits_of_the_guard",
        "schedule_the_guard_idle",
    ],
}


def asked(account: Account, **parts: Any) -> Any:
    given = json.dumps({"probes": [], "attacks": [], "walls": {}, **parts})
    with account.home() as home:
        done = account.python(account.interpreter(), "-m", HOST, given=given, TMPDIR=str(home))
        assert done.returncode == 0, done.stderr
        assert not list(home.iterdir())
    return json.loads(done.stdout)


@cache
def report_of(kind: str) -> Any:
    """Attack once, in whatever order the tests run."""
    return asked(Account.of(kind), probes=list(PROBES), attacks=list(ATTACKS))


@pytest.fixture(params=KINDS)
def report(request: pytest.FixtureRequest) -> Any:
    return report_of(request.param)


@pytest.fixture(scope="module")
def weakened() -> Any:
    """The attacks that a wall stops, without it; by a user who can enter the folders of its interpreter."""
    account = Account.of(KINDS[1]) if Account.of(KINDS[0]).uid == 0 else Account.of(KINDS[0])
    told = asked(account, walls={str(wall): names for wall, names in STOPPED_BY.items()})
    return told["weakened"]


@pytest.mark.parametrize("name", PROBES)
def test_a_way_out_is_closed(report: Any, name: str) -> None:
    told = report["probes"]
    assert told["status"] == "succeeded", told
    assert told["output"][name].startswith("refused "), told["output"][name]


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


def test_no_process_is_left(report: Any) -> None:
    assert report["left"] == []


def test_a_runner_has_its_stream_and_its_output_and_no_other_descriptor(report: Any) -> None:
    kinds = [target.partition(":")[0] for target in report["descriptors"]]
    assert kinds == ["/dev/null", "pipe", "pipe", "pipe", "pipe", "socket"]


def test_a_flood_of_output_is_cut(report: Any) -> None:
    assert report["attacks"]["harmless_flood_of_output"]["frames"] == LOG_FRAMES


def test_a_run_gets_no_more_processor_time_than_its_share(report: Any) -> None:
    used = report["attacks"]["burn_processor_time"]["cpu_seconds"]
    if report["counted"]:
        assert 0.2 < used < 1.2  # 0.5 cores for 1.6 seconds, and the kernel counts in slices
    else:
        # A second for each of two processes, and as much again until they are killed if the signal comes late.
        assert 1.0 <= used < 5.0


@pytest.mark.parametrize(
    ("wall", "name"), [(w, n) for w, names in STOPPED_BY.items() for n in names]
)
def test_without_its_wall_the_attack_succeeds(weakened: Any, wall: Wall, name: str) -> None:
    if wall is Wall.LANDLOCK and landlock.abi() == 0:
        pytest.skip("this kernel has no Landlock")
    told = weakened[wall]
    assert told["status"] == "succeeded", told
    assert told["output"][name].startswith("done "), told["output"][name]


def test_every_wall_is_missed_by_an_attack() -> None:
    assert set(STOPPED_BY) == set(Wall)
