"""The statements that a connection has prepared: a bounded number, of which most stay when others come. Pure.

With more tenants than there is room for, the least recently used statement is the very one that is needed next, and
nothing would stay. So of those that find no room only one in some is admitted. Tenants that are here because their own
connection is busy have half the room: their plans are used less.
"""

from collections import OrderedDict

# A plan takes about 250 kB of its backend, so these take 75 MB. A tenant has six that each of its runs uses.
PLANS_MAX = 300
ADMITTED_ONE_IN = 17  # prime: each run has the same statements in the same order, and the turn must not fall on one


class PreparedPlans:
    """The texts that are prepared, the one used last at the end."""

    def __init__(self, most: int = PLANS_MAX) -> None:
        self._most = most
        self._texts: OrderedDict[bytes, None] = OrderedDict()
        self._refused = 0

    def __len__(self) -> int:
        return len(self._texts)

    def admit(self, text: bytes, *, at_home: bool = True) -> bool:
        """Return True if this text is prepared, or is to be prepared now; false if it is to be planned for once."""
        if text in self._texts:
            self._texts.move_to_end(text)
            return True
        room = self._most if at_home else self._most // 2
        if len(self._texts) >= room and not self._is_its_turn():
            return False
        if len(self._texts) >= self._most:
            self._texts.popitem(last=False)
        self._texts[text] = None
        return True

    def _is_its_turn(self) -> bool:
        self._refused = (self._refused + 1) % ADMITTED_ONE_IN
        return self._refused == 0
