"""The lanes of workers that are gone."""

import redis
from django.test import override_settings

from executions.worker.boot import WorkerBoot
from executions.worker.lanes import lane_of, sweep_lanes
from executions.worker.loops.housekeeping import Housekeeping


def test_only_those_of_unknown_boots_go(boot: WorkerBoot, broker: "redis.Redis") -> None:
    dead = lane_of("dead")
    broker.lpush(boot.lane, "for one that lives")
    broker.lpush(dead, "for nobody")
    broker.lpush("celery", "of somebody else")
    Housekeeping(boot).turn()
    assert set(broker.keys()) == {boot.lane.encode(), b"celery"}
    assert sweep_lanes() == 0


@override_settings(REDIS_URL="unix:///nowhere/redis.sock")
def test_redis_away_is_left_for_the_next_time(boot: WorkerBoot) -> None:
    assert sweep_lanes() == 0
