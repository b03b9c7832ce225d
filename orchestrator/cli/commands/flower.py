"""`isolane flower`: without Django, since it may know the broker and its own login only."""

import os

import click

from foundation.errors import Unavailable
from orchestrator import env
from orchestrator.flower import serve


@click.command()
@click.option("--address", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=5555,
    show_default=True,
    type=click.IntRange(1, 65535),
    help="Port to listen on.",
)
def flower(address: str, port: int) -> None:
    """Serve Flower behind a login, read-only and without its unprotected pages."""
    found = env.read_flower(os.environ)
    if not found.redis_url:
        raise Unavailable("No platform runs here: start one with 'make up', or set REDIS_URL.")
    if not found.password:
        raise Unavailable("FLOWER_PASSWORD is not set; Flower is not served without a login.")
    serve(
        address=address,
        port=port,
        user=found.user,
        password=found.password,
        redis_url=found.redis_url,
        trusted_proxies=found.trusted_proxies,
        ready_file=found.ready_file,
    )
