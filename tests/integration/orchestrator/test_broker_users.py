"""orchestrator.broker_users: the rights of each kind of process at a real broker."""

import pytest
import redis
from redis.exceptions import NoPermissionError

from orchestrator.broker_users import FLOWER, WEB, WORKER
from tests.plugin import SERVERS

LANE = "lane.00000000"
EVERYBODYS = ["PING", "SELECT 0"]
ALLOWED = {
    WEB: [f"LPUSH {LANE} x", "SET isolane:idempotency:1:a b", "GET isolane:idempotency:1:a"],
    WORKER: [
        f"LPUSH {LANE} x", f"BRPOP {LANE} 1", "SCAN 0 MATCH lane.*", f"DEL {LANE}", "LPUSH a.reply.celery.pidbox x",
        "PUBLISH /0.celeryev/worker.online x",
    ],
    FLOWER: [f"LLEN {LANE}", "PUBLISH /0.celery.pidbox x", "PSUBSCRIBE /0.celeryev/*"],
}  # fmt: skip
NOBODYS = [
    "FLUSHALL", "CONFIG GET *", "ACL LIST", "CLIENT LIST", "KEYS *", "MONITOR", "SHUTDOWN", "SCRIPT FLUSH", "SAVE",
    "SLAVEOF NO ONE", "GET other", "SET other x", "PUBLISH other x", "PSUBSCRIBE *", "EVAL return(1) 1 other",
]  # fmt: skip
REFUSED = {
    # It wakes workers; it neither takes what others were sent nor tells workers what to do.
    WEB: [
        f"BRPOP {LANE} 1", f"DEL {LANE}", f"SET {LANE} x", f"LLEN {LANE}", "SCAN 0", "PUBLISH /0.celery.pidbox x",
        "SADD _kombu.binding.celery.pidbox x", "PSUBSCRIBE /0.celeryev/*",
    ],
    WORKER: [f"SET {LANE} x", "HSET unacked t x", "PSUBSCRIBE /0.celery*"],
    # It reads how long lanes are, and neither sends to them nor takes from them.
    FLOWER: [
        f"LPUSH {LANE} x", f"BRPOP {LANE} 1", f"DEL {LANE}", "GET isolane:login:x", "SCAN 0",
        "LPUSH a.reply.celery.pidbox x", "DEL w1@here.celery.pidbox",
    ],
}  # fmt: skip


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("user", [WEB, WORKER, FLOWER])
def test_each_user_may_what_its_process_does_and_nothing_else(user: str) -> None:
    with redis.Redis.from_url(SERVERS.redis_url) as administrator:
        for command in [*EVERYBODYS, *ALLOWED[user]]:
            answer = administrator.execute_command("ACL", "DRYRUN", user, *command.split(" "))
            assert answer == b"OK", command
        for command in [*NOBODYS, *REFUSED[user]]:
            answer = administrator.execute_command("ACL", "DRYRUN", user, *command.split(" "))
            assert b"no permissions" in answer, (command, answer)
    with (
        redis.Redis.from_url(SERVERS.redis_url_of(user)) as client,
        pytest.raises(NoPermissionError),
    ):
        client.flushall()
