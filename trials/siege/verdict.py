"""The verdict on a siege: list the broken promises. Pure."""

from collections.abc import Iterator

from trials.siege.figures import Phase, SiegeResult, server_errors, times
from trials.siege.plan import HALF_OPEN

SLOWEST = 10.0  # p95 as a multiple of idle
# Above idle: 64 MiB of requests and 64 MiB of answers (orchestrator.web.limits), and 4,096 connections.
RSS_BYTES = 256 * 1024 * 1024
UNNAMED_BYTES = 200 * 1024 * 1024
LOG_BYTES = 1024 * 1024  # per minute
MEGABYTE = 1024 * 1024


def broken(siege: SiegeResult, slowest: float = SLOWEST) -> list[str]:
    """Return one line per broken promise."""
    return [
        *_unusable(siege),
        *_slow(siege, slowest),
        *_failed(siege.attack),
        *_runs(siege.attack),
        *_unbounded(siege),
        *_restarted(siege),
    ]


def _unusable(siege: SiegeResult) -> Iterator[str]:
    """Yield what makes the other figures meaningless."""
    if siege.idle.victim.failures:
        yield f"idle: requests failed before the attack: {dict(siege.idle.victim.failures)}"
    for name, tally in siege.attacks.items():
        if not tally.tries:
            yield f"attack: no {name} were sent"
    held = siege.attacks.get("half-open connections")
    if held and held.tries < HALF_OPEN:
        yield f"attack: only {held.tries} of {HALF_OPEN} half-open connections were tried"


def _slow(siege: SiegeResult, slowest: float) -> Iterator[str]:
    idle, attack = siege.idle.latencies, siege.attack.latencies
    slower = times(attack.p95, idle.p95)
    if slower >= slowest:
        yield (
            f"latency: the victim's p95 is {attack.p95:.0f} ms, {slower:.1f} times {idle.p95:.0f} ms of idle;"
            f" it must stay below {slowest:.0f} times"
        )


def _failed(attack: Phase) -> Iterator[str]:
    failures = attack.victim.failures
    if errors := server_errors(failures):
        yield f"errors: the victim got {errors} answers of 5xx"
    if others := failures.total() - errors:
        yield f"errors: {others} other requests of the victim failed"


def _runs(attack: Phase) -> Iterator[str]:
    victim = attack.victim
    if not victim.submitted:
        yield "runs: the victim could submit none"
    if left := victim.submitted - victim.runs["succeeded"]:
        yield f"runs: {left} of the victim's {victim.submitted} did not succeed: {dict(victim.runs)}"


def _unbounded(siege: SiegeResult) -> Iterator[str]:
    attack = siege.attack
    grown = attack.web.rss_bytes - siege.idle.web.rss_bytes
    if grown > RSS_BYTES:
        yield f"memory: web grew by {_mb(grown)}, at most {_mb(RSS_BYTES)} are allowed"
    if attack.web.unnamed_bytes > UNNAMED_BYTES:
        yield (
            f"disk: web put {_mb(attack.web.unnamed_bytes)} of bodies aside, at most"
            f" {_mb(UNNAMED_BYTES)} are allowed"
        )
    allowed = LOG_BYTES * max(1.0, attack.seconds / 60)
    if attack.log_bytes > allowed:
        yield f"logs: they grew by {_mb(attack.log_bytes)}, at most {_mb(allowed)} are allowed"


def _restarted(siege: SiegeResult) -> Iterator[str]:
    if (starts := len(siege.idle.web.pids | siege.attack.web.pids)) > 1:
        yield f"web: it ended and was started again {starts - 1} times"
    if siege.recovery_s is None:
        yield "web: it did not answer in time again after the attack"


def _mb(size: float) -> str:
    return f"{size / MEGABYTE:.1f} MB"
