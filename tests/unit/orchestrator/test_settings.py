"""orchestrator.settings: options in an operator's address take precedence over the defaults."""

from typing import Any

from orchestrator.settings import CELERY_BROKER_TRANSPORT_OPTIONS, _database


def test_a_connection_that_is_half_open_is_given_up() -> None:
    options = _database("postgresql://isolane@db/isolane")["OPTIONS"]
    assert (options["tcp_user_timeout"], options["keepalives"]) == (10_000, 1)
    assert options["connect_timeout"] == 5


def test_an_address_may_say_otherwise() -> None:
    url = "postgresql://isolane@db/isolane?tcp_user_timeout=60000&connect_timeout=2"
    options = _database(url)["OPTIONS"]
    assert (options["tcp_user_timeout"], options["connect_timeout"]) == ("60000", "2")


def test_a_broker_that_answers_nothing_is_noticed() -> None:
    options: dict[str, Any] = CELERY_BROKER_TRANSPORT_OPTIONS
    # Several commands are waited for, one after the other, when a worker stops; it is given 20 s.
    assert 0 < options["socket_timeout"] <= 2
    # Kombu: brpop_timeout (1 s) + 2 * health_check_interval.
    assert 1 + 2 * options["health_check_interval"] <= 15
