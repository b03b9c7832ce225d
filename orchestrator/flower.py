"""Flower behind a login, read-only, with bounded memory, and without its two pages that know no login."""

from typing import Any

from flower import urls
from flower.app import Flower
from flower.options import options

from orchestrator.celery import app
from orchestrator.core.errors import Conflict

MAX_TASKS = 5_000
PURGE_OFFLINE_SECONDS = 60
# Flower serves these without a login even when one is configured.
OPEN_PATHS = frozenset({"/metrics", "/healthcheck"})


def serve(*, address: str, port: int, user: str, password: str, cookie_secret: str) -> None:
    """Serve until stopped."""
    options.address = address
    options.port = port
    options.basic_auth = [f"{user}:{password}"]
    options.read_only = True
    options.max_tasks = MAX_TASKS
    options.purge_offline_workers = PURGE_OFFLINE_SECONDS
    urls.handlers[:] = [handler for handler in urls.handlers if path_of(handler) not in OPEN_PATHS]
    settings = {**urls.settings, "cookie_secret": cookie_secret}
    dashboard = Flower(capp=app, options=options, **settings)
    try:
        dashboard.start_http_server()
    except OSError as error:
        raise Conflict(f"Flower cannot listen on {address}:{port}: {error.strerror}.") from None
    try:
        dashboard.start()
    except (KeyboardInterrupt, SystemExit):
        dashboard.stop()


def path_of(handler: Any) -> str:
    """The pattern of one of Flower's handlers, which are tuples or URLSpecs."""
    return str(handler[0] if isinstance(handler, tuple) else handler.regex.pattern).rstrip("$")
