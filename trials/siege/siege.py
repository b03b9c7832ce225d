"""One siege from its tenants to its figures.

Timing: minutes. Model: sync, main thread; victim and attackers are processes. Guarantee: these end with it. Failure:
bubble; what the platform does under attack is no failure but the result.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from trials.siege.figures import Phase, Siege
from trials.siege.part import Part
from trials.siege.plan import ATTACKER, VICTIM, Phases
from trials.siege.platform import Platform
from trials.siege.schemas import small
from trials.siege.tally import Tally
from trials.siege.victim import ANSWER_SECONDS, PATHS, RUN_SECONDS, Seen
from trials.siege.watch import Watched

LOOK_SECONDS = 0.5
# A victim sees its last run end, and a request of it time out.
LAST_SECONDS = RUN_SECONDS + 2 * ANSWER_SECONDS
RECOVERY_SECONDS = 30.0
QUICK_SECONDS = 1.0
QUICK_ANSWERS = 5  # one after the other
ATTACKERS = ("strangers", "guessers")

Say = Callable[[str], None]


class Besieged:
    """A platform with two tenants, and what happens to it."""

    def __init__(self, platform: Platform, say: Say) -> None:
        self._platform = platform
        self._say = say
        self._keys = {name: platform.tenant(name) for name in (VICTIM, ATTACKER)}
        status, _ = platform.call(self._keys[VICTIM], "/api/v1/blueprints", small(), ANSWER_SECONDS)
        if status not in {200, 201}:
            raise RuntimeError(f"the victim's blueprint was not published: status {status}")

    def run(self, phases: Phases) -> Siege:
        """Idle, attack, and the control, whose size is known only then."""
        self._settle()
        self._say(f"idle, {phases.idle:.0f} s")
        idle, _, _ = self._phase(phases.idle, {})
        self._say(f"attack, {phases.attack:.0f} s")
        wanted = {name: self._wanted(ATTACKER, phases.attack) for name in ATTACKERS}
        attack, told, recovery_s = self._phase(phases.attack, wanted)
        shares = {name: one["cpu_s"] / phases.attack for name, one in told.items()}
        control, burnt = None, dict[str, Any]()
        if recovery_s is not None:
            self._say(f"control, {phases.control:.0f} s")
            control, burnt, _ = self._phase(
                phases.control,
                {
                    f"burner of {name}": {"share": share, "seconds": phases.control}
                    for name, share in shares.items()
                },
            )
        return Siege(
            idle=idle,
            attack=attack,
            control=control,
            recovery_s=recovery_s,
            attacks={
                what: Tally.from_dict(tally)
                for one in told.values()
                for what, tally in one["seen"].items()
            },
            attack_shares=shares,
            control_shares={
                name.removeprefix("burner of "): one["cpu_s"] / phases.control
                for name, one in burnt.items()
            },
        )

    def _wanted(self, tenant: str, seconds: float) -> dict[str, Any]:
        return {
            "web": self._platform.web,
            "flower": self._platform.flower,
            "key": self._keys[tenant],
            "seconds": seconds,
        }

    def _phase(
        self, seconds: float, others: Mapping[str, Mapping[str, Any]]
    ) -> tuple[Phase, dict[str, Any], float | None]:
        """The victim at work beside others; how long it took until answers were quick again."""
        with ExitStack() as stack:
            victim = stack.enter_context(self._part(VICTIM, self._wanted(VICTIM, seconds)))
            parts = {
                name: stack.enter_context(self._part(name, wanted))
                for name, wanted in others.items()
            }
            for part in (victim, *parts.values()):
                part.wait_ready()
            logs, watched = self._platform.log_bytes(), Watched()
            for part in (victim, *parts.values()):
                part.go()
            self._watch(watched, seconds)
            watched.log_bytes = {
                name: size - logs.get(name, 0) for name, size in self._platform.log_bytes().items()
            }
            told = {name: part.result(LAST_SECONDS) for name, part in parts.items()}
            recovery_s = self._settle()
            seen = victim.result(LAST_SECONDS)["seen"]
        counted = {name: Counter(seen[name]) for name in ("failures", "runs")}
        return (
            Phase(seconds=seconds, seen=Seen(**{**seen, **counted}), web=watched),
            told,
            recovery_s,
        )

    def _part(self, name: str, wanted: Mapping[str, Any]) -> Part:
        return Part(name.split(" ", 1)[0], wanted, os.environ, self._platform.logs)

    def _watch(self, watched: Watched, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            watched.look(self._platform.web_pid)
            time.sleep(min(left, LOOK_SECONDS))

    def _settle(self) -> float | None:
        """Wait until some answers in a row are quick; how long that took, None if it took too long."""
        began, quick = time.monotonic(), 0
        while time.monotonic() - began < RECOVERY_SECONDS:
            asked = time.monotonic()
            status, _ = self._platform.call(self._keys[VICTIM], PATHS[0], None, QUICK_SECONDS)
            took = time.monotonic() - asked
            quick = quick + 1 if status == 200 else 0
            if quick == QUICK_ANSWERS:
                return time.monotonic() - began
            time.sleep(max(0.0, LOOK_SECONDS / 5 - took))
        return None
