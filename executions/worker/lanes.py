"""The lanes of workers in Redis: their names, and the deletion of those of dead workers.

Timing: background-worker.
Model: sync, a fifth of a second at most for each call to Redis.
Guarantee: at-least-once.
Failure: a Redis that does not answer is tried again later; the messages of a dead lane are only wake-ups.
"""

import logging

import redis
from django.conf import settings

from executions.placement.chain import SHORT_TRY_SECONDS
from executions.placement.models import Worker
from tenants.scope import platform_scope

PREFIX = "lane."
logger = logging.getLogger(__name__)


def lane_of(boot: object) -> str:
    """Return the name of a boot's queue; no other process ever consumes it."""
    return f"{PREFIX}{boot}"


def delete_lane(lane: str) -> None:
    """Delete the lane of a boot that has ended."""
    try:
        with _client() as client:
            client.delete(lane)
    except redis.RedisError as error:
        about = {"event": "NOT_SWEPT"}
        logger.info("lane %s not deleted: %s", lane, type(error).__name__, extra=about)


def sweep_lanes() -> int:
    """Delete the lanes of boots that are not registered; returns how many. No run is placed there."""
    try:
        with _client() as client:
            found = set(client.scan_iter(f"{PREFIX}*", count=1000))
            # Read after the lanes: a boot is registered before anything is sent to its lane.
            with platform_scope():
                found -= set(Worker.objects.values_list("lane", flat=True))
            return int(client.delete(*found)) if found else 0
    except redis.RedisError as error:
        logger.info("lanes not swept: %s", type(error).__name__, extra={"event": "NOT_SWEPT"})
        return 0


def _client() -> "redis.Redis":
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=SHORT_TRY_SECONDS,
        socket_connect_timeout=SHORT_TRY_SECONDS,
        decode_responses=True,
    )
