"""`python -m trials.cgroup_v2`: run tests in a Debian with cgroup v2, in a systemd unit with `Delegate=yes`.

Timing: two minutes and the tests; the processor is emulated, so they take longer than elsewhere: six minutes or more.
Model: sync, main thread.
Guarantee: unless it is killed, it ends the machine and removes its directory.
Failure: exit code 1 if a test failed or the guest gave no result, 2 if this machine lacks something.
"""

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import click

from trials.cgroup_v2 import machine, needs, project, system
from trials.cgroup_v2.mirror import NoMirrorError, mirror_of
from trials.cgroup_v2.outcome import Outcome, outcome_of
from trials.output import progress

_RUNTIMES = "tests/integration/resources/runtimes"
# The cgroups by themselves, real sandboxes in them, and a worker that runs very many.
SELECT = (
    f"{_RUNTIMES}/cgroups",
    f"{_RUNTIMES}/contract/test_limits.py",
    f"{_RUNTIMES}/contract/test_endings.py",
    f"{_RUNTIMES}/contract/test_remains.py",
    f"{_RUNTIMES}/process",
    "tests/acceptance/test_flood.py",
)


@click.command()
@click.option(
    "--select",
    multiple=True,
    default=SELECT,
    show_default=True,
    help="A file, directory or test for pytest; repeatable.",
)
@click.option(
    "--user",
    "users",
    type=click.Choice([system.USER, "root"]),
    multiple=True,
    default=(system.USER, "root"),
    show_default=True,
    help="The user of the unit: an ordinary one, or root; repeatable.",
)
@click.option("--mirror", help="A Debian mirror; otherwise that of this machine's apt.")
@click.option(
    "--work",
    type=click.Path(file_okay=False, path_type=Path),
    help="A directory that stays, so that Debian is installed only once.",
)
@click.option("--minutes", type=click.FloatRange(min=1), default=30, show_default=True)
def main(
    *,
    select: tuple[str, ...],
    users: tuple[str, ...],
    mirror: str | None,
    work: Path | None,
    minutes: float,
) -> None:
    """Boot a Debian with cgroup v2 and run tests in a unit with Delegate=yes; exit code 0 if all pass.

    Needs root, debootstrap, qemu and this machine's Debian mirror. Nothing is installed on this machine.
    """
    if lacking := needs.missing():
        for line in lacking:
            click.echo(line, err=True)
        sys.exit(2)
    with ExitStack() as stack:
        folder = work or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="isolane-v2-"))
        )
        results = _run(folder, select, users, mirror, minutes)
    for user in users:
        click.echo(f"as {user}: {results[user].text}")
    sys.exit(0 if all(result.ok for result in results.values()) else 1)


def _run(
    folder: Path,
    select: tuple[str, ...],
    users: tuple[str, ...],
    mirror: str | None,
    minutes: float,
) -> dict[str, Outcome]:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        booted = system.build(folder, mirror or mirror_of(system.RELEASE), progress)
    except NoMirrorError as error:
        raise click.ClickException(str(error)) from error
    progress("writing the project's disk")
    disk = project.build(folder, select, users)
    progress("booting")
    lines = machine.run(booted, disk, seconds=minutes * 60, show=click.echo)
    return {user: outcome_of(user, lines) for user in users}


if __name__ == "__main__":
    main()
