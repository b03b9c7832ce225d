"""resources.isolation_choice: the weakest available level that is strict enough, or a refusal; never a weaker one."""

from itertools import product

import pytest

from resources.isolation_choice import (
    IsolationReason,
    IsolationUnavailable,
    choose,
    describe_reason,
)
from tenants.isolation import Isolation

SHARED, PROCESS, DOCKER, KUBERNETES = Isolation


@pytest.mark.parametrize(
    ("required", "trusted", "available", "expected"),
    [
        (SHARED, True, {SHARED, DOCKER}, SHARED),
        (SHARED, False, {SHARED, PROCESS, DOCKER}, PROCESS),
        (SHARED, False, {SHARED, DOCKER}, DOCKER),
        (PROCESS, True, {SHARED, PROCESS}, PROCESS),
        (PROCESS, True, {SHARED, KUBERNETES}, KUBERNETES),
        (KUBERNETES, False, set(Isolation), KUBERNETES),
    ],
)
def test_the_weakest_that_is_strict_enough(
    required: Isolation, trusted: bool, available: set[Isolation], expected: Isolation
) -> None:
    assert choose(required=required, trusted=trusted, available=available).level is expected


def test_the_reason_says_what_decided() -> None:
    everything = set(Isolation)
    decided = choose(required=DOCKER, trusted=False, available=everything)
    assert decided.reason is IsolationReason.TENANT_REQUIRES
    decided = choose(required=SHARED, trusted=False, available=everything)
    assert decided.reason is IsolationReason.TENANT_UNTRUSTED
    assert "not trusted" in describe_reason(decided.reason)
    assert describe_reason("of a later version") == "of a later version"


@pytest.mark.parametrize(
    ("required", "trusted", "available", "offered"),
    [
        (SHARED, False, {SHARED}, "offer shared"),
        (DOCKER, True, {SHARED, PROCESS}, "offer process, shared"),
        (SHARED, True, set(), "offer nothing"),
    ],
)
def test_refused_rather_than_run_weaker(
    required: Isolation, trusted: bool, available: set[Isolation], offered: str
) -> None:
    with pytest.raises(IsolationUnavailable, match=offered):
        choose(required=required, trusted=trusted, available=available)


@pytest.mark.parametrize(
    ("required", "trusted", "requested", "available", "weaker"),
    [
        (PROCESS, False, None, {SHARED}, "set NAME --trusted --isolation shared"),
        (SHARED, False, None, {SHARED}, "set NAME --trusted --isolation shared"),
        (PROCESS, True, None, {SHARED}, "set NAME --isolation shared"),
        (DOCKER, False, None, {SHARED, PROCESS}, "set NAME --isolation process"),
        (DOCKER, False, PROCESS, {SHARED, PROCESS}, "set NAME --isolation process"),
        (PROCESS, False, PROCESS, {SHARED}, ""),  # the blueprint would still ask for it
        (PROCESS, False, None, set(), ""),
    ],
)
def test_a_refusal_names_the_ways_out_that_lead_out(
    required: Isolation,
    trusted: bool,
    requested: Isolation | None,
    available: set[Isolation],
    weaker: str,
) -> None:
    with pytest.raises(IsolationUnavailable) as refused:
        choose(required=required, trusted=trusted, available=available, requested=requested)
    told = refused.value.detail
    assert "Enable that level on a worker ('isolane levels'" in told
    assert (weaker in told) if weaker else ("tenants set" not in told)


@pytest.mark.parametrize(("required", "available"), list(product(Isolation, repeat=2)))
def test_an_untrusted_tenant_never_shares(required: Isolation, available: Isolation) -> None:
    try:
        chosen = choose(required=required, trusted=False, available={available}).level
    except IsolationUnavailable:
        return
    assert chosen is not SHARED
    assert chosen.strictness >= required.strictness


# --- what the blueprint asks for
@pytest.mark.parametrize(
    ("required", "requested", "trusted", "expected", "reason"),
    [
        (SHARED, DOCKER, True, DOCKER, IsolationReason.BLUEPRINT_REQUESTS),
        (
            DOCKER,
            PROCESS,
            True,
            DOCKER,
            IsolationReason.TENANT_REQUIRES,
        ),  # never weaker than the tenant's
        (DOCKER, DOCKER, True, DOCKER, IsolationReason.TENANT_REQUIRES),
        (SHARED, SHARED, True, SHARED, IsolationReason.TENANT_REQUIRES),
        (SHARED, SHARED, False, PROCESS, IsolationReason.TENANT_UNTRUSTED),
        (SHARED, KUBERNETES, False, KUBERNETES, IsolationReason.BLUEPRINT_REQUESTS),
    ],
)
def test_the_stricter_of_requirement_and_request_wins(
    required: Isolation,
    requested: Isolation,
    trusted: bool,
    expected: Isolation,
    reason: IsolationReason,
) -> None:
    decision = choose(
        required=required, trusted=trusted, available=set(Isolation), requested=requested
    )
    assert decision.level is expected
    assert decision.reason is reason


def test_a_request_that_nobody_can_meet_is_refused_with_the_reason() -> None:
    with pytest.raises(
        IsolationUnavailable, match=r"isolation docker or stricter \(the blueprint asks for it"
    ) as refused:
        choose(required=SHARED, trusted=True, available={SHARED, PROCESS}, requested=DOCKER)
    assert "trusted" not in str(refused.value)


@pytest.mark.parametrize(("required", "requested", "available"), list(product(Isolation, repeat=3)))
def test_no_request_makes_it_weaker(
    required: Isolation, requested: Isolation, available: Isolation
) -> None:
    try:
        chosen = choose(
            required=required, trusted=True, available={available}, requested=requested
        ).level
    except IsolationUnavailable:
        assert available.strictness < max(required.strictness, requested.strictness)
    else:
        assert chosen.strictness >= max(required.strictness, requested.strictness)
