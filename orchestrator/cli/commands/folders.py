"""`isolane folders`: remove folders of runs that workers left on this machine."""

import os
import tempfile

import click

from resources.runtimes.sweeping import FolderSweep, foreign_folders

SECONDS = 60.0


@click.command()
def folders() -> None:
    """Remove folders that workers left in the temporary directory, and list those that cannot be removed.

    Workers do the same every 20 seconds, and retry less and less often; normally no folder is left.
    Run it as the workers' user, with their TMPDIR. Folders in use are not touched. Exit 1 if any is left.
    """
    left = FolderSweep(log=False).turn(SECONDS)
    others = foreign_folders()
    for kept in left:
        click.echo(
            f"{str(kept.path)!a} last changed {kept.changed_at:%Y-%m-%d %H:%M:%S} UTC: {kept.reason}"
        )
    for path in others:
        click.echo(f"{str(path)!a}: of another user, and perhaps in use; not looked at")
    if left:
        raise SystemExit(1)
    if not others:
        click.echo(
            f"No folder is left in {tempfile.gettempdir()} by workers of user {os.geteuid()}."
        )
