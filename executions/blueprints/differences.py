"""The difference between two texts as a unified diff; with bounded work, since comparing may take long. Pure."""

from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from itertools import accumulate
from typing import Any

from executions.blueprints.work import TooMuchWork, Work, check_budget
from foundation.errors import TooMuchToCheck

_LINE = 20  # units of work to search for one line
_PLACE = 15  # likewise for each place where it is found


class _Matcher(SequenceMatcher[str]):
    """Pays for each search before it begins, by the places where its lines are found."""

    def __init__(self, before: Sequence[str], after: Sequence[str], work: Work) -> None:
        super().__init__(None, before, after)
        self._work = work
        found: dict[str, list[int]] = self.b2j  # type: ignore[attr-defined]  # their stub leaves it out
        places = (_LINE + _PLACE * len(found.get(line, ())) for line in before)
        self._paid = list(accumulate(places, initial=0))

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        end = self._paid[-1] if ahi is None else self._paid[ahi]
        self._work.spend(end - self._paid[alo])
        return super().find_longest_match(alo, ahi, blo, bhi)


def unified(before: Sequence[str], after: Sequence[str], names: tuple[str, str]) -> str:
    """Return the lines that differ, with three around them; empty if none does."""
    try:
        with check_budget() as work:
            groups = list(_Matcher(before, after, work).get_grouped_opcodes())
    except TooMuchWork:
        raise TooMuchToCheck(
            f"{names[0]} and {names[1]} differ in too many lines to be compared; read both versions."
        ) from None
    if not groups:
        return ""
    lines = [f"--- {names[0]}\n", f"+++ {names[1]}\n"]
    for group in groups:
        lines += _hunk(group, before, after)
    return "".join(lines)


def _hunk(group: Sequence[Any], before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    first, last = group[0], group[-1]
    yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
    for tag, old, old_end, new, new_end in group:
        if tag == "equal":
            yield from (f" {line}" for line in before[old:old_end])
            continue
        yield from (f"-{line}" for line in before[old:old_end])
        yield from (f"+{line}" for line in after[new:new_end])


def _range(start: int, end: int) -> str:
    """Return the range of lines in a diff's notation: from 1, or the line before if there are none."""
    length = end - start
    if length == 1:
        return f"{start + 1}"
    return f"{start + 1 if length else start},{length}"
