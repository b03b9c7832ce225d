"""`isolane web`: the process that serves requests."""

import click

from orchestrator.cli.support.platform import require_platform


@click.command()
@click.option("--address", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(1, 65535),
    help="Port to listen on.",
)
def web(address: str, port: int) -> None:
    """Serve the API, the admin and the pages, with limits on size, time and number of requests."""
    # The application sets some environment variables before the settings are loaded.
    from orchestrator.web.process import run  # noqa: PLC0415

    require_platform()
    run(address, port)
