"""The number of connections follows from the descriptors, also with those that come and go."""

import pytest

from orchestrator.web.limits import MAX_CONNECTIONS, TURNS, WebLimits


@pytest.mark.parametrize("descriptors", [64, 256, 1_024, 4_096, 20_000, 65_536])
def test_all_connections_and_new_ones_fit_into_the_descriptors(descriptors: int) -> None:
    limits = WebLimits.for_descriptors(descriptors)
    assert limits.connections + TURNS * limits.accepted < descriptors
    assert 0 < limits.connections <= MAX_CONNECTIONS


@pytest.mark.parametrize("descriptors", [256, 1_024, 65_536])
def test_there_is_always_somebody_to_drop(descriptors: int) -> None:
    limits = WebLimits.for_descriptors(descriptors)
    assert limits.queued + limits.streams + limits.at_work < limits.connections


def test_what_is_given_goes_before_what_is_derived() -> None:
    assert WebLimits.for_descriptors(1_024, connections=7, at_work=3).connections == 7
