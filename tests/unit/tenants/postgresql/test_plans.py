"""Which statements are prepared: a bounded number, of which most stay however many others come."""

from tenants.postgresql.plans import ADMITTED_ONE_IN, PreparedPlans


def texts(number: int) -> list[bytes]:
    return [f"SELECT {index}".encode() for index in range(number)]


def admitted(plans: PreparedPlans, asked: list[bytes], *, at_home: bool = True) -> list[bytes]:
    return [text for text in asked if plans.admit(text, at_home=at_home)]


def test_all_are_admitted_while_there_is_room() -> None:
    plans = PreparedPlans(most=10)
    assert admitted(plans, texts(10) * 3) == texts(10) * 3
    assert len(plans) == 10


def test_never_more_than_so_many() -> None:
    plans = PreparedPlans(most=10)
    admitted(plans, texts(1000))
    assert len(plans) == 10


def test_most_stay_though_more_are_asked_for_in_turn() -> None:
    """The least recently used would always be the one that is needed next, and nothing would stay."""
    plans = PreparedPlans(most=50)
    admitted(plans, texts(100))
    hits = len(admitted(plans, texts(100) * 20)) / (100 * 20)
    assert 0.4 < hits < 0.6


def test_what_is_used_often_gets_in_and_what_is_not_used_goes() -> None:
    plans = PreparedPlans(most=10)
    unused = texts(10)
    admitted(plans, unused)
    often = [b"SELECT 'a'", b"SELECT 'b'"]
    admitted(plans, often * 2 * ADMITTED_ONE_IN)
    assert admitted(plans, often) == often
    assert len(plans) == 10


def test_tenants_that_are_elsewhere_at_home_have_half_the_room() -> None:
    plans = PreparedPlans(most=20)
    strangers = texts(10 + ADMITTED_ONE_IN)
    assert len(admitted(plans, strangers, at_home=False)) == 11
    own = [b"SELECT 'a'", b"SELECT 'b'"]
    assert admitted(plans, own) == own
