"""The clocks of a worker. Safety hangs on their order, so a set that breaks it cannot be made.

A worker that cannot renew must have stopped itself (`self_fence`) before another one may end its placements (`lease`).
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

# Each pair in this order, with the reason.
ORDER = (
    ("renewal", "resend", "a message may be on its way during one renewal"),
    ("resend", "self_fence", "a lost message is sent again while the lease is fresh"),
    ("repeat", "self_fence", "a write is tried again while the lease is fresh"),
    ("self_fence", "lease", "a worker stops itself before another one ends its placements"),
    ("tick_silence", "lease", "a worker that hangs in its tick keeps no other from reaping"),
    ("hand_back", "lease", "a worker that stops hands back before its lease lapses"),
    ("probe", "unsure", "one lost probe means nothing"),
    ("unsure", "unreachable", "nothing is placed on a lane for a while before its worker gives up"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Clocks:
    """All periods and limits of a worker, in seconds."""

    # --- the lease
    renewal: float = 1.0  # between two renewals of the lease
    resend: float = 2.0  # without a link in a thread, until a placement's chain is sent again
    self_fence: float = 10.0  # without a renewal, until a worker kills its runtimes
    lease: float = 15.0  # without a renewal, until other workers end a boot's placements
    repeat: float = 0.2  # between two tries to write while the database is away

    # --- the lane
    probe: float = 2.0  # between two probes of the worker's own lane
    unsure: float = 5.0  # without an answer to a probe, until nothing more is placed here
    unreachable: float = 30.0  # without an answer to a probe, until the worker ends

    # --- other loops
    tick: float = 1.0  # between two ticks
    tick_silence: float = 5.0  # of the session with the tick's lock, until it is ended
    log_flush: float = 1.0  # between two writes of what running steps have logged
    sweep: float = 1.0  # between two sweeps of credentials that ended placements have left
    housekeeping: float = 20.0  # between two sweeps of what dead workers have left

    # --- the end of a worker
    drain_grace: float = 10.0  # in which running steps may finish
    hand_back: float = 5.0  # in which idle placements are handed back
    last_sweep: float = 3.0  # in which credentials are revoked: it may be the last worker

    def __post_init__(self) -> None:
        if problems := list(_problems(asdict(self))):
            raise ValueError("; ".join(problems))


def clock_problems(**seconds: float) -> list[str]:
    """Return one sentence for each rule that these clocks, and the defaults of the others, break."""
    unknown = sorted(seconds.keys() - DEFAULTS.keys())
    if unknown:
        return [f"there is no clock {name!r}" for name in unknown]
    return list(_problems(DEFAULTS | seconds))


def _problems(seconds: dict[str, float]) -> Iterator[str]:
    for name, value in seconds.items():
        if not value > 0:
            yield f"{name} ({value:g} s) must be positive"
    for first, second, reason in ORDER:
        if not seconds[first] < seconds[second]:
            less, more = f"{first} ({seconds[first]:g} s)", f"{second} ({seconds[second]:g} s)"
            yield f"{less} must be less than {more}: {reason}"


DEFAULTS = asdict(Clocks())
