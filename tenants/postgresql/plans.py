"""The statements that a connection has prepared: a bounded number, of which most stay when others come. Pure.

With more tenants than there is room for, the least recently used statement is the very one that is needed next, and
nothing would stay. So of those that find no room only one in some is admitted. There is none for tenants that are here
because their own connection is busy, either: they would have plans everywhere.
"""

from collections import OrderedDict

# A plan takes about 250 kB of its backend, so these take 100 MB. A tenant has five that each of its runs uses.
PLANS_MAX = 400
ADMITTED_ONE_IN = 17  # prime: each run has the same statements in the same order, and the turn must not fall on one


class PreparedPlans:
    """The texts that are prepared, the one used last at the end."""

    def __init__(self, most: int = PLANS_MAX) -> None:
        self._most = most
        self._texts: OrderedDict[bytes, None] = OrderedDict()
        self._refused = 0

    def __len__(self) -> int:
        return len(self._texts)

    def admit(self, text: bytes, *, has_room: bool = True) -> bool:
        """Return True if this text is prepared, or is to be prepared now; false if it is to be planned for once."""
        if text in self._texts:
            self._texts.move_to_end(text)
            return True
        is_full = len(self._texts) >= self._most
        if (is_full or not has_room) and not self._is_its_turn():
            return False
        if is_full:
            self._texts.popitem(last=False)
        self._texts[text] = None
        return True

    def _is_its_turn(self) -> bool:
        self._refused = (self._refused + 1) % ADMITTED_ONE_IN
        return self._refused == 0
