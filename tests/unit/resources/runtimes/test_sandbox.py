"""resources.runtimes.sandbox: the limit that a run has hit, while another thread ends it."""

from isolane.results import Code
from resources.runtimes.sandbox import SandboxRunner


class Group:
    """A cgroup that tells these excesses, one after the other."""

    def __init__(self, *told: Code | None) -> None:
        self._told = list(told)

    def excess(self) -> Code | None:
        """Return the next one."""
        return self._told.pop(0)


class EndedMeanwhile(SandboxRunner):
    """A runner whose cgroup is gone at the second look."""

    def __init__(self, group: Group) -> None:
        self._excess = None
        self._groups = [group, None]

    @property
    def _group(self) -> Group | None:  # type: ignore[override]
        return self._groups.pop(0)


def test_a_cgroup_that_goes_while_it_is_asked_is_no_error() -> None:
    assert EndedMeanwhile(Group(Code.PROCESS_LIMIT)).excess() is Code.PROCESS_LIMIT


def test_an_excess_that_was_seen_stays() -> None:
    runner = EndedMeanwhile(Group())
    runner._groups = [Group(Code.RAM_EXCEEDED, None)] * 2
    assert [runner.excess(), runner.excess()] == [Code.RAM_EXCEEDED] * 2
