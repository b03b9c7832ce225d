"""Flower behind a login, read-only, with bounded memory, and without its two pages that need no login.

It has its own Celery application, which knows the broker and none of the platform's settings.

Timing: a long-running process of its own.
Model: Tornado's event loop, and threads that ask the workers.
Guarantee: best-effort; shows the events since its start.
Failure: a port in use is reported in one line.
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
from foundation.ready_file import write_ready_file
from orchestrator import env
from orchestrator.broker_options import broker_options
from orchestrator.descriptors import raise_descriptors
from orchestrator.flower_login import FlowerBehindLogin, FlowerLogin
from orchestrator.flower_server import listen
from orchestrator.lane_app import lane_app

MAX_TASKS = 5_000
MAX_WORKERS = 500
PRUNE_EVERY = 1_000  # events; workers send heartbeats, so it happens also when nothing runs
PURGE_OFFLINE_SECONDS = 60
# Flower serves these without a login even when one is configured.
OPEN_PATHS = frozenset({"/metrics", "/healthcheck"})


class NoMetrics:
    """Replaces Flower's Prometheus metrics, which grow with every worker boot and name and cannot be read."""

    def observe_task(self, worker: str, event: dict[str, Any], task: Any) -> None:
        """Keep nothing."""

    def observe_worker(self, worker: str, event: dict[str, Any]) -> None:
        """Keep nothing."""

    def remove_workers(self, worker_names: Collection[str]) -> int:
        """Remove nothing."""
        return 0


class BoundedState(EventsState):  # type: ignore[misc]  # Flower has no types
    """Flower's memory, with limits also for what it keeps by names of tasks and workers."""

    def __init__(self, *, inspected: MutableMapping[str, Any], **limits: int) -> None:
        super().__init__(**limits)
        self.metrics = NoMetrics()
        self.inspected = inspected

    def event(self, event: dict[str, Any]) -> None:
        """Store an event and, from time to time, prune."""
        super().event(event)
        if self.event_count % PRUNE_EVERY == 0:
            self.prune()

    def prune(self) -> None:
        """Forget unused names: every boot is a worker with a new name, every blueprint step a task with a new name."""
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
    """Reads the lanes as the user in the broker's address, which Flower's own leaves out."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.redis.connection_pool.connection_kwargs["username"] = self.username


def watching_app(redis_url: str) -> Celery:
    """Return a Celery application without tasks that can ask workers and receive their events."""
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
    ready_file: str = "",
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
    # Cookies are only used for OAuth logins, which are not offered.
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
    write_ready_file(ready_file)
    try:
        dashboard.start()
    except (KeyboardInterrupt, SystemExit):
        dashboard.stop()


def path_of(handler: Any) -> str:
    """Return the pattern of one of Flower's handlers, which are tuples or URLSpecs."""
    return str(handler[0] if isinstance(handler, tuple) else handler.regex.pattern).rstrip("$")
