"""isolane.baseline: what can be tried without ending the processes below this one, as a whole restore would."""

import signal

from isolane.baseline import end_timers


def test_timers_that_were_left_are_ended() -> None:
    signal.setitimer(signal.ITIMER_REAL, 60)
    end_timers()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
