"""Flower behind a login, read-only, with bounded memory, and without its two pages that know no login.

It has a Celery application of its own, which knows the broker and none of the platform's settings.

Timing: a long-running process of its own. Model: an event loop of Tornado's, and threads that ask the workers.
Guarantee: best-effort; it shows what it has heard since its start. Failure: a port that is taken is one line.
"""

from collections.abc import Collection, MutableMapping
from secrets import token_urlsafe
from typing import Any

from celery import Celery
from flower import urls
from flower.events import EventsState
from flower.options import options
from flower.utils import broker

from foundation.client_address import networks_of
from foundation.errors import Conflict
from foundation.failure_counts import FailureCounts
from foundation.logs import limit_lines, log_to_stderr
from orchestrator import env
from orchestrator.broker_options import broker_options
from orchestrator.flower_login import FlowerBehindLogin, FlowerLogin
from orchestrator.flower_server import listen
from orchestrator.lane_app import lane_app
from orchestrator.web.descriptors import raise_descriptors

MAX_TASKS = 5_000
MAX_WORKERS = 500
PRUNE_EVERY = 1_000  # events; workers send heartbeats, so it comes round also when nothing runs
PURGE_OFFLINE_SECONDS = 60
# Flower serves these without a login even when one is configured.
OPEN_PATHS = frozenset({"/metrics", "/healthcheck"})


class NoMetrics:
    """In place of Flower's Prometheus metrics, which grow with every worker boot and name and which nobody can read."""

    def observe_task(self, worker: str, event: dict[str, Any], task: Any) -> None:
        """Keep nothing."""

    def observe_worker(self, worker: str, event: dict[str, Any]) -> None:
        """Keep nothing."""

    def remove_workers(self, worker_names: Collection[str]) -> int:
        """Nothing was kept."""
        return 0


class BoundedState(EventsState):  # type: ignore[misc]  # Flower has no types
    """Flower's memory. It limits tasks and workers, but not what it keeps beside them under their names."""

    def __init__(self, *, inspected: MutableMapping[str, Any], **limits: int) -> None:
        super().__init__(**limits)
        self.metrics = NoMetrics()
        self.inspected = inspected

    def event(self, event: dict[str, Any]) -> None:
        """Take note of an event and, from time to time, forget what nothing remembered belongs to."""
        super().event(event)
        if self.event_count % PRUNE_EVERY == 0:
            self.prune()

    def prune(self) -> None:
        """Every boot is a worker of a new name, and every step of every blueprint is a task of a new name."""
        names = {task.name for task in self.tasks.values()}
        for kept, by_name in (
            (self.workers.keys(), self.counter),
            (self.workers.keys(), self.inspected),
            (self.workers.keys(), self.tasks_by_worker),
            (names, self.tasks_by_type),
        ):
            for name in by_name.keys() - kept:
                del by_name[name]
        self._seen_types &= names


class BrokerOnSocket(broker.RedisSocket):  # type: ignore[misc]  # Flower has no types
    """Looks at the lanes as the user in the broker's address; Flower's own leaves that out."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.redis.connection_pool.connection_kwargs["username"] = self.username


def watching_app(redis_url: str) -> Celery:
    """A Celery application that can ask workers and hear of them, and has no tasks."""
    app = lane_app(is_current=False)
    url = env.broker_url(redis_url)
    app.conf.update(
        broker_url=url,
        broker_transport_options=broker_options(url),
        accept_content=["json"],
        task_ignore_result=True,
        timezone="UTC",
    )
    return app


def serve(
    *,
    address: str,
    port: int,
    user: str,
    password: str,
    redis_url: str,
    trusted_proxies: Collection[str] = (),
) -> None:
    """Serve until stopped."""
    raise_descriptors()
    log_to_stderr()
    limit_lines()
    broker.RedisSocket = BrokerOnSocket
    options.address = address
    options.port = port
    options.basic_auth = [f"{user}:{password}"]
    options.read_only = True
    options.purge_offline_workers = PURGE_OFFLINE_SECONDS
    urls.handlers[:] = [handler for handler in urls.handlers if path_of(handler) not in OPEN_PATHS]
    # Cookies are for logins elsewhere, which are not offered.
    settings = {**urls.settings, "cookie_secret": token_urlsafe(32)}
    login = FlowerLogin(
        user=user,
        password=password,
        trusted=networks_of(trusted_proxies),
        counts=FailureCounts(),
    )
    dashboard = FlowerBehindLogin(
        login=login, capp=watching_app(redis_url), options=options, **settings
    )
    dashboard.events.state = BoundedState(
        inspected=dashboard.inspector.workers,
        max_tasks_in_memory=MAX_TASKS,
        max_workers_in_memory=MAX_WORKERS,
    )
    try:
        listen(dashboard, address, port)
    except OSError as error:
        raise Conflict(f"Flower cannot listen on {address}:{port}: {error.strerror}.") from None
    try:
        dashboard.start()
    except (KeyboardInterrupt, SystemExit):
        dashboard.stop()


def path_of(handler: Any) -> str:
    """The pattern of one of Flower's handlers, which are tuples or URLSpecs."""
    return str(handler[0] if isinstance(handler, tuple) else handler.regex.pattern).rstrip("$")
