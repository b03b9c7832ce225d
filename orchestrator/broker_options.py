"""How every process speaks to the broker; in the words of kombu. Pure."""

from typing import Any


def broker_options(broker_url: str) -> dict[str, Any]:
    """Options of the transport to the broker at this address."""
    return {
        # One try: a chain that could not be sent is sent again by the worker's loop, a consumer connects by itself.
        "max_retries": 0,
        # A broker that takes connections and bytes but answers nothing: a command waits so long for its answer (several
        # do, one after the other, when a worker stops), and so often a consumer that hears nothing is looked at.
        "socket_timeout": 2,
        "health_check_interval": 5,
        "socket_connect_timeout": 5,
        "socket_keepalive": not broker_url.startswith("redis+socket"),
        # Nothing is acknowledged, so nobody has to look for what was not.
        "ack_emulation": False,
        # Messages have no priorities, so a lane is one list in Redis and not four.
        "priority_steps": [0],
    }
