"""How much a check or an evaluation may do before it is given up: counted, so that it ends on every machine. Pure."""


class TooMuchWork(Exception):
    """It was given up."""


class Work:
    """What is left to be done."""

    def __init__(self, limit: int) -> None:
        self._left = limit

    def spend(self, units: int) -> None:
        """Take from what is left, before it is done."""
        self._left -= units
        if self._left < 0:
            raise TooMuchWork
