"""The printed report of a siege. Pure."""

from collections.abc import Iterator

from bench.figures import percentile
from trials.siege.figures import Phase, SiegeResult, server_errors, times
from trials.siege.tally import Tally

MEGABYTE = 1024 * 1024


def lines(siege: SiegeResult) -> Iterator[str]:
    """Yield the lines of the report."""
    phases = {"idle": siege.idle, "control": siege.control, "attack": siege.attack}
    for name, phase in phases.items():
        yield from _phase(name, phase) if phase else [f"{name}: not measured, web did not recover"]
    yield from _ratios(siege)
    for name, tally in siege.attacks.items():
        yield from _attack(name, tally, siege.attack.seconds)
    for name, share in siege.attack_shares.items():
        control = siege.control_shares.get(name)
        burnt = f", in the control {control:.0%}" if control is not None else ""
        yield f"CPU of {name}: {share:.0%} of a core{burnt}"
    if siege.recovery_s is not None:
        yield f"answers in time again {siege.recovery_s:.1f} s after the attack"


def _phase(name: str, phase: Phase) -> Iterator[str]:
    found, victim, web = phase.latencies, phase.victim, phase.web
    yield (
        f"{name}, {phase.seconds:.0f} s: victim's GET p50 {found.p50:.1f} ms, p95 {found.p95:.1f} ms,"
        f" max {found.most:.0f} ms, {found.requests} requests"
    )
    errors = server_errors(victim.failures)
    yield f"  failed: {victim.failures.total()}, of these 5xx: {errors}"
    for got, number in victim.failures.most_common():
        yield f"    {number:6} {got}"
    took = victim.run_seconds
    slowest = f", p50 {percentile(took, 50):.1f} s, max {max(took):.1f} s" if took else ""
    yield f"  runs: {victim.submitted} submitted, {victim.runs['succeeded']} succeeded{slowest}"
    yield (
        f"  web: RSS at most {web.rss_bytes / MEGABYTE:.0f} MB, {web.descriptors} descriptors,"
        f" {web.unnamed_bytes / MEGABYTE:.0f} MB of unnamed files"
    )
    grown = ", ".join(
        f"{log} {size / 1024:.1f} KB" for log, size in sorted(web.log_bytes.items()) if size
    )
    yield f"  logs grew by: {grown or 'nothing'}"


def _ratios(siege: SiegeResult) -> Iterator[str]:
    attack, idle = siege.attack.latencies, siege.idle.latencies
    text = f"p95 of the attack: {times(attack.p95, idle.p95):.1f} x idle"
    if siege.control:
        control = siege.control.latencies
        text += f", {times(attack.p95, control.p95):.1f} x control"
        text += f" (control: {times(control.p95, idle.p95):.1f} x idle)"
    yield text


def _attack(name: str, tally: Tally, seconds: float) -> Iterator[str]:
    parts = [f"{tally.tries} tries ({tally.tries / seconds:.0f}/s)"]
    if tally.left_out:
        parts.append(f"{tally.left_out} left out, as too many were unanswered")
    if tally.most_open:
        parts.append(f"{tally.most_open} open at once")
    if tally.sent_bytes:
        parts.append(f"{tally.sent_bytes / MEGABYTE:.0f} MB sent")
    unanswered = tally.tries - tally.answers.total()
    parts.append(f"{unanswered} not over at the end, longest {tally.longest_s:.1f} s")
    yield f"{name}: {', '.join(parts)}"
    for got, number in sorted(tally.answers.items()):
        yield f"    {number:6} {got}"
