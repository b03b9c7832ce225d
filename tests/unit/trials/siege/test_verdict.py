"""The verdict finds each broken promise of a siege, and nothing if all were kept."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from trials.siege import report
from trials.siege.figures import Phase, SiegeResult, latencies, server_errors, times
from trials.siege.plan import HALF_OPEN
from trials.siege.tally import Tally
from trials.siege.verdict import LOG_BYTES, RSS_BYTES, UNNAMED_BYTES, broken
from trials.siege.victim import VictimFigures
from trials.siege.web_usage import WebUsage

HELD = "half-open connections"


def phase(*, seconds: float = 60, slow_ms: float = 20, **changed: Any) -> Phase:
    """Make a phase without failures, then change figures of the victim or of web."""
    victim = VictimFigures(
        latencies_ms=[10.0] * 90 + [slow_ms] * 10,
        submitted=2,
        runs=Counter(succeeded=2),
        run_seconds=[0.5, 0.7],
    )
    web = WebUsage(rss_bytes=100_000_000, descriptors=20, pids={7}, log_bytes={"web": 10})
    for name, value in changed.items():
        setattr(victim if hasattr(victim, name) else web, name, value)
    return Phase(seconds=seconds, victim=victim, web=web)


def siege(**changed: Any) -> SiegeResult:
    kept = SiegeResult(
        idle=phase(),
        attack=phase(slow_ms=199),
        control=phase(slow_ms=40),
        recovery_s=0.5,
        attacks={HELD: Tally(tries=HALF_OPEN), "wrong logins": Tally(tries=30_000)},
        attack_shares={"strangers": 0.4},
        control_shares={"strangers": 0.39},
    )
    return replace(kept, **changed)


def test_nothing_is_found_if_all_promises_were_kept() -> None:
    assert broken(siege()) == []
    assert broken(siege(attack=phase(slow_ms=200)), slowest=11) == []


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"slow_ms": 200}, "latency: the victim's p95 is 200 ms, 10.0 times 20 ms of idle"),
        ({"failures": Counter({"503": 3})}, "errors: the victim got 3 answers of 5xx"),
        ({"failures": Counter({"429": 1, "no connection": 1})}, "errors: 2 other requests"),
        ({"submitted": 3}, "runs: 1 of the victim's 3 did not succeed"),
        ({"runs": Counter(succeeded=1, failed=1)}, "runs: 1 of the victim's 2 did not succeed"),
        ({"submitted": 0, "runs": Counter()}, "runs: the victim could submit none"),
        ({"rss_bytes": 100_000_001 + RSS_BYTES}, "memory: web grew by 256.0 MB"),
        ({"unnamed_bytes": UNNAMED_BYTES + 1}, "disk: web put 200.0 MB of bodies aside"),
        ({"log_bytes": {"web": LOG_BYTES, "flower": 1}}, "logs: they grew by 1.0 MB"),
        ({"pids": {7, 8, 9}}, "web: it ended and was started again 2 times"),
    ],
)
def test_what_the_attack_has_broken_is_named(changed: dict[str, Any], expected: str) -> None:
    (line,) = broken(siege(attack=phase(**changed)))
    assert line.startswith(expected)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"recovery_s": None, "control": None}, "web: it did not answer in time again"),
        ({"idle": phase(failures=Counter({"500": 1}))}, "idle: requests failed"),
        ({"attacks": {HELD: Tally(tries=HALF_OPEN - 1)}}, "attack: only 1199 of 1200"),
        ({"attacks": {"wrong logins": Tally()}}, "attack: no wrong logins were sent"),
    ],
)
def test_a_siege_that_shows_nothing_is_not_a_success(
    changed: dict[str, Any], expected: str
) -> None:
    (line,) = broken(siege(**changed))
    assert line.startswith(expected)


def test_logs_may_grow_with_time_and_not_less_in_a_short_siege() -> None:
    grown = {"web": 2 * LOG_BYTES}
    assert broken(siege(attack=phase(seconds=120, log_bytes=grown))) == []
    assert broken(siege(attack=phase(seconds=10, log_bytes={"web": LOG_BYTES}))) == []
    assert broken(siege(attack=phase(seconds=10, log_bytes=grown))) != []


def test_figures() -> None:
    found = latencies([float(value) for value in range(1, 101)])
    assert (found.requests, found.p50, found.p95, found.most) == (100, 50, 95, 100)
    assert latencies([]).requests == 0
    assert (times(6, 3), times(1, 0)) == (2, float("inf"))
    assert server_errors(Counter({"500": 1, "503": 2, "429": 4, "no answer in 15 s": 8})) == 3


def test_the_report_compares_with_idle_and_with_the_control() -> None:
    answers = Counter({"login: 429": 29_000})
    wrong = Tally(tries=29_500, left_out=500, answers=answers, longest_s=1.5)
    lines = list(report.lines(siege(attacks={"wrong logins": wrong})))
    assert "p95 of the attack: 9.9 x idle, 5.0 x control (control: 2.0 x idle)" in lines
    assert any(line.startswith("wrong logins: 29500 tries (492/s), 500 left out") for line in lines)
    assert "     29000 login: 429" in lines
    assert "CPU of strangers: 40% of a core, in the control 39%" in lines
    unrecovered = list(report.lines(siege(control=None, recovery_s=None)))
    assert "control: not measured, web did not recover" in unrecovered


def test_a_tally_passes_through_json() -> None:
    tally = Tally(tries=2, sent_bytes=9)
    tally.note("login", 200, 0.3)
    assert Tally.from_dict(tally.as_dict()) == tally
