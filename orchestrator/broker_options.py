"""Options of every connection to the broker, in kombu's words. Pure."""

from typing import Any


def broker_options(broker_url: str) -> dict[str, Any]:
    """Return the transport options for the broker at this address."""
    return {
        # One try: the worker's loop sends an unsent chain again, and a consumer reconnects by itself.
        "max_retries": 0,
        # For a broker that accepts connections and bytes but answers nothing: the wait for a command's answer (several
        # follow each other when a worker stops), and the interval at which a silent consumer is checked.
        "socket_timeout": 2,
        "health_check_interval": 5,
        "socket_connect_timeout": 5,
        "socket_keepalive": not broker_url.startswith("redis+socket"),
        # Nothing is acknowledged, so there is nothing to restore.
        "ack_emulation": False,
        # Messages have no priorities, so a lane is one list in Redis and not four.
        "priority_steps": [0],
    }
