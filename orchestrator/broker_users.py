"""Rights of each kind of process at the broker, as access control lists of Redis. Pure.

`python -m orchestrator.broker_users` prints `deploy/redis-users.acl`, with a placeholder for the hash of each password.

Names of keys and channels are kombu's; `lane.*` are the workers' queues, `isolane:*` are web's keys. Brackets bind
commands to keys: a right to read a lane's length is not a right to write to it. The number in front of a channel is the
database; subscriptions must match these names exactly.
"""

import sys
from collections.abc import Mapping

WEB, WORKER, FLOWER, ADMINISTRATOR = "isolane_web", "isolane_worker", "isolane_flower", "default"

_CONNECTING = "+ping +select +client|setinfo +client|setname"
_REMEMBERED = "(~isolane:* +get +set +incr +expire +ttl +del +eval +evalsha)"
# Kombu stores the queues bound to an exchange, for remote control and events; with scripts where they expire.
_BINDINGS = (
    "+time +script|load +script|exists "
    "(~_kombu.binding* +sadd +srem +smembers +zadd +zrem +zrangebyscore +exists +del +evalsha)"
)
_CHANNELS = "&/0.celery.pidbox &/0.celeryev/* +publish +psubscribe +punsubscribe +multi +exec"

RULES: Mapping[str, str] = {
    # Wakes workers by a message on their lane; remembers idempotency keys and failed logins.
    WEB: f"{_CONNECTING} (~lane.* +lpush) {_REMEMBERED}",
    # Consumes its lane, sends chains to others, deletes those of dead workers; sends events, answers remote control.
    # It has all of web's rights, so that an operator's commands can use its login.
    WORKER: f"{_CONNECTING} {_CHANNELS} &/0.celeryev/worker.* +scan (~lane.* +lpush +brpop +llen +del) "
    f"(~*.celery.pidbox ~celeryev.* +lpush +brpop +llen +pexpire +del) {_BINDINGS} {_REMEMBERED}",
    # Asks workers by remote control, receives their events, shows the lengths of their lanes.
    FLOWER: f"{_CONNECTING} {_CHANNELS} (~lane.* ~celery +llen) "
    f"(~*.reply.celery.pidbox ~celeryev.* +brpop +llen +pexpire +del) {_BINDINGS}",
    ADMINISTRATOR: "~* &* +@all",
}


def line(user: str, password: str) -> str:
    """Return one user's line of a configuration or ACL file; the password behind `>`, or its SHA-256 behind `#`."""
    return f"user {user} reset on {password} {RULES[user]}"


def template() -> str:
    """Return an ACL file with placeholders for the hashes; Redis does not load it as it is."""
    return "".join(f"{line(user, f'#<sha256 of the password of {user}>')}\n" for user in RULES)


if __name__ == "__main__":
    sys.stdout.write(template())
