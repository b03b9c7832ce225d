"""The statements that a connection has prepared: a bounded number, of which most stay when others come. Pure.

With more tenants than there is room for, the least recently used statement is the very one that is needed next, and
nothing would stay. So only one in some that find no room takes the place of another.
"""

from collections import OrderedDict

# A plan takes about 250 kB of its backend, so these take 100 MB. A tenant has five that each of its runs uses.
PLANS_MAX = 400
ADMITTED_ONE_IN = 16


class PreparedPlans:
    """The texts that are prepared, the one used last at the end."""

    def __init__(self, most: int = PLANS_MAX) -> None:
        self._most = most
        self._texts: OrderedDict[bytes, None] = OrderedDict()
        self._refused = 0

    def __len__(self) -> int:
        return len(self._texts)

    def admit(self, text: bytes) -> bool:
        """Return True if this text is prepared, or is to be prepared now; false if it is to be planned for once."""
        if text in self._texts:
            self._texts.move_to_end(text)
            return True
        if len(self._texts) >= self._most and not self._make_room():
            return False
        self._texts[text] = None
        return True

    def _make_room(self) -> bool:
        self._refused = (self._refused + 1) % ADMITTED_ONE_IN
        if self._refused:
            return False
        self._texts.popitem(last=False)
        return True
