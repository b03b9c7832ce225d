"""`isolane web`: the process that callers reach."""

import click

from orchestrator.cli.support.platform import require_platform


@click.command()
@click.option("--address", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535))
def web(address: str, port: int) -> None:
    """Serve the API, the admin and the pages, with limits on what callers send, hold and wait for."""
    # The application decides on some of its settings before they are loaded.
    from orchestrator.web.process import run  # noqa: PLC0415

    require_platform()
    run(address, port)
