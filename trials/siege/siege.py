"""One siege, from creating the tenants to the figures.

Timing: minutes.
Model: sync, main thread; victim and attackers are processes.
Guarantee: these processes end with it.
Failure: bubble; a failure of the platform under attack is a result, not an error.
"""

import os
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from trials.output import Progress
from trials.siege.figures import Phase, SiegeResult
from trials.siege.plan import ATTACKER, VICTIM, Phases
from trials.siege.platform import Platform
from trials.siege.role_process import RoleProcess
from trials.siege.schemas import small
from trials.siege.tally import Tally
from trials.siege.victim import ANSWER_SECONDS, PATHS, RUN_SECONDS, VictimFigures
from trials.siege.web_usage import WebUsage

SAMPLE_SECONDS = 0.5
# A victim waits for the end of its last run, and for a request that times out.
LAST_SECONDS = RUN_SECONDS + 2 * ANSWER_SECONDS
RECOVERY_SECONDS = 30.0
FAST_SECONDS = 1.0
FAST_ANSWERS = 5  # in a row
ATTACKERS = ("strangers", "guessers")


class Siege:
    """The phases of a siege on a platform with two tenants."""

    def __init__(self, platform: Platform, progress: Progress) -> None:
        self._platform = platform
        self._progress = progress
        self._keys = {name: platform.tenant(name) for name in (VICTIM, ATTACKER)}
        status, _ = platform.call(self._keys[VICTIM], "/api/v1/blueprints", small(), ANSWER_SECONDS)
        if status not in {200, 201}:
            raise RuntimeError(f"the victim's blueprint was not published: status {status}")

    def run(self, phases: Phases) -> SiegeResult:
        """Run idle, attack and control; the attack determines the size of the control."""
        self._settle()
        self._progress(f"idle, {phases.idle:.0f} s")
        idle, _, _ = self._phase(phases.idle, {})
        self._progress(f"attack, {phases.attack:.0f} s")
        tasks = {name: self._task(ATTACKER, phases.attack) for name in ATTACKERS}
        attack, results, recovery_s = self._phase(phases.attack, tasks)
        shares = {name: one["cpu_s"] / phases.attack for name, one in results.items()}
        control, burnt = None, dict[str, Any]()
        if recovery_s is not None:
            self._progress(f"control, {phases.control:.0f} s")
            control, burnt, _ = self._phase(
                phases.control,
                {
                    f"burner of {name}": {"share": share, "seconds": phases.control}
                    for name, share in shares.items()
                },
            )
        return SiegeResult(
            idle=idle,
            attack=attack,
            control=control,
            recovery_s=recovery_s,
            attacks={
                what: Tally.from_dict(tally)
                for one in results.values()
                for what, tally in one["seen"].items()
            },
            attack_shares=shares,
            control_shares={
                name.removeprefix("burner of "): one["cpu_s"] / phases.control
                for name, one in burnt.items()
            },
        )

    def _task(self, tenant: str, seconds: float) -> dict[str, Any]:
        return {
            "web": self._platform.web,
            "flower": self._platform.flower,
            "key": self._keys[tenant],
            "seconds": seconds,
        }

    def _phase(
        self, seconds: float, others: Mapping[str, Mapping[str, Any]]
    ) -> tuple[Phase, dict[str, Any], float | None]:
        """Let the victim work beside others; return figures, results and seconds until answers were fast."""
        with ExitStack() as stack:
            victim = stack.enter_context(self._process(VICTIM, self._task(VICTIM, seconds)))
            processes = {
                name: stack.enter_context(self._process(name, task))
                for name, task in others.items()
            }
            for process in (victim, *processes.values()):
                process.wait_ready()
            logs, usage = self._platform.log_bytes(), WebUsage()
            for process in (victim, *processes.values()):
                process.go()
            self._watch(usage, seconds)
            usage.log_bytes = {
                name: size - logs.get(name, 0) for name, size in self._platform.log_bytes().items()
            }
            results = {name: process.result(LAST_SECONDS) for name, process in processes.items()}
            recovery_s = self._settle()
            seen = victim.result(LAST_SECONDS)["seen"]
        counted = {name: Counter(seen[name]) for name in ("failures", "runs")}
        return (
            Phase(seconds=seconds, victim=VictimFigures(**{**seen, **counted}), web=usage),
            results,
            recovery_s,
        )

    def _process(self, name: str, task: Mapping[str, Any]) -> RoleProcess:
        return RoleProcess(name.split(" ", 1)[0], task, os.environ, self._platform.logs)

    def _watch(self, usage: WebUsage, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            usage.sample(self._platform.web_pid)
            time.sleep(min(left, SAMPLE_SECONDS))

    def _settle(self) -> float | None:
        """Wait for fast answers in a row; return the seconds, or None if it took too long."""
        began, fast = time.monotonic(), 0
        while time.monotonic() - began < RECOVERY_SECONDS:
            sent = time.monotonic()
            status, _ = self._platform.call(self._keys[VICTIM], PATHS[0], None, FAST_SECONDS)
            took = time.monotonic() - sent
            fast = fast + 1 if status == 200 else 0
            if fast == FAST_ANSWERS:
                return time.monotonic() - began
            time.sleep(max(0.0, SAMPLE_SECONDS / 5 - took))
        return None
