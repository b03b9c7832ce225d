"""`isolane norp`: the compliance tests of NORP-006 on the running platform.

Timing: request-time.
Model: sync.
Guarantee: as the services'; a temporary tenant is deleted however the command ends.
Failure: bubble; exit 1 means that a demand does not hold, exit 2 that the tests could not be run.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple

import click
from rich.markup import escape

from foundation.errors import IsolaneError
from orchestrator.cli.support.django import CONSOLE, actor
from orchestrator.cli.support.parsing import plain
from orchestrator.cli.support.platform import OperatorCommand
from orchestrator.norp.criteria import TITLES, Evidence, Verdict
from orchestrator.norp.offered_levels import levels_of, require_worker
from orchestrator.norp.probe_runner import NotRun
from orchestrator.norp.suite import Target, run_tests
from orchestrator.norp.targets import cache_target, database_target, require_cache
from orchestrator.norp.temporary_tenants import temporary_tenant, trust_for
from tenants.isolation import Isolation
from tenants.scope import TenantRef
from tenants.selectors import tenant_by_schema

EXIT_FAILED = 1
EXIT_NOT_RUN = 2


class Tenants(NamedTuple):
    """The tenant whose runs are tested, and the tenant for comparison."""

    subject: TenantRef
    other: TenantRef
    temporary: tuple[TenantRef, ...]  # those of the two that are deleted at the end


@click.command(cls=OperatorCommand)
@click.option("--tenant", help="Test with this tenant instead of a temporary one.")
@click.option(
    "--level",
    type=click.Choice([level.value for level in Isolation]),
    help="Test this isolation level only. Default: all available levels.",
)
@click.option(
    "--database",
    metavar="DEFINITION",
    help="Also test this database of --tenant; its own login inspects the remote server.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object at the end, for programs."
)
def norp(*, tenant: str | None, level: str | None, database: str | None, as_json: bool) -> None:
    """Run the five compliance tests of NORP-006, and print each demand with its evidence.

    Probes run as ordinary runs. Leftovers are looked for on the remote servers: in the run cache and, with --database,
    in that database. Without --tenant the probes run in two temporary tenants, which are deleted at the end. With
    --tenant they run in that tenant and in a temporary one for comparison; the named tenant keeps the blueprints
    norp.*, their runs and the definition norp-cache. Temporary tenants need a running provisioner.

    Exit 0 if every demand holds, 1 if one does not, 2 if the tests could not be run.
    """
    if database and not tenant:
        raise click.UsageError(
            "--database is a definition of a tenant: name the tenant with --tenant."
        )
    try:
        require_cache()
        require_worker()
        with _tenants(tenant) as tenants:
            levels = _levels(tenants.subject, level)
            targets = [cache_target(tenants.subject, tenants.other, actor=actor())]
            if database:
                targets.append(database_target(tenants.subject, database))
            verdicts = _run(targets, levels, tenants.temporary, as_json=as_json)
    except IsolaneError as error:
        click.secho(f"The tests could not be run: {error.detail}", fg="red", err=True)
        raise SystemExit(EXIT_NOT_RUN) from None
    _conclude(verdicts, levels, as_json=as_json)


@contextmanager
def _tenants(named: str | None) -> Iterator[Tenants]:
    with ExitStack() as stack:
        if named:
            subject, other = tenant_by_schema(named), stack.enter_context(_temporary())
            yield Tenants(subject, other, (other,))
        else:
            subject, other = stack.enter_context(_temporary()), stack.enter_context(_temporary())
            yield Tenants(subject, other, (subject, other))


def _temporary() -> AbstractContextManager[TenantRef]:
    return temporary_tenant(actor=actor(), say=lambda text: click.echo(text, err=True))


def _levels(tenant: TenantRef, wanted: str | None) -> dict[Isolation, str]:
    """Return the levels, each with the reason why it cannot be tested, if there is one."""
    levels = levels_of(tenant)
    if wanted:
        levels = {Isolation(wanted): levels[Isolation(wanted)]}
    if all(levels.values()):
        reasons = "; ".join(f"{level}: {reason}" for level, reason in levels.items())
        raise NotRun(f"No level can be tested for {tenant.schema}. {reasons}.")
    return levels


def _run(
    targets: Sequence[Target],
    levels: dict[Isolation, str],
    temporary: Sequence[TenantRef],
    *,
    as_json: bool,
) -> list[Verdict]:
    verdicts = []
    with CONSOLE.status("") as line:
        for level in (level for level, refusal in levels.items() if not refusal):
            trust_for(level, temporary, actor=actor())
            for target in targets:
                where = f"{target.name}, {level}"

                def on_start(test: int, where: str = where) -> None:
                    line.update(f"Test {test} of {len(TITLES)}: {TITLES[test]} ({where})")

                for verdict in run_tests(
                    target, level.value, requested_by=actor(), on_start=on_start
                ):
                    verdicts.append(verdict)
                    if not as_json:
                        _print(verdict)
    return verdicts


def _conclude(verdicts: Sequence[Verdict], levels: dict[Isolation, str], *, as_json: bool) -> None:
    holds = bool(verdicts) and all(verdict.holds for verdict in verdicts)
    if as_json:
        click.echo(json.dumps(_body(verdicts, levels, holds=holds)))
    else:
        _print_end(verdicts, levels, holds=holds)
    if not holds:
        raise SystemExit(EXIT_FAILED)


def _print(verdict: Verdict) -> None:
    result = "[green]pass[/]" if verdict.holds else "[red]FAIL[/]"
    where = f"{verdict.resource}, {verdict.level}"
    CONSOLE.print(f"{result} Test {verdict.test}: {verdict.title} ({escape(where)})")
    for one in verdict.evidence:
        mark = "[green]yes[/]" if one.holds else "[red]NO [/]"
        CONSOLE.print(f"  {mark} {escape(one.demand)}")
        for name, fact in one.facts.items():
            CONSOLE.print(f"        {escape(plain(f'{name}: {_text(fact)}'))}", style="dim")


def _print_end(verdicts: Sequence[Verdict], levels: dict[Isolation, str], *, holds: bool) -> None:
    for level, refusal in levels.items():
        if refusal:
            click.echo(f"Level {level} was not tested: {refusal}.")
    failed = [verdict for verdict in verdicts if not verdict.holds]
    passed = f"{len(verdicts) - len(failed)} of {len(verdicts)} tests pass"
    tested = ", ".join(level for level, refusal in levels.items() if not refusal)
    result = "compliant" if holds else "NOT compliant"
    click.echo(f"NORP-006 at {tested}: {result}, {passed}.")


def _body(
    verdicts: Sequence[Verdict], levels: dict[Isolation, str], *, holds: bool
) -> dict[str, Any]:
    return {
        "compliant": holds,
        "levels": {
            level.value: {"tested": not refusal, "reason": refusal}
            for level, refusal in levels.items()
        },
        "tests": [
            {
                "test": verdict.test,
                "title": verdict.title,
                "resource": verdict.resource,
                "level": verdict.level,
                "holds": verdict.holds,
                "executions": [run.name for run in verdict.runs],
                "evidence": [_evidence(one) for one in verdict.evidence],
            }
            for verdict in verdicts
        ],
    }


def _evidence(one: Evidence) -> dict[str, Any]:
    return {"demand": one.demand, "holds": one.holds, "facts": one.facts}


def _text(fact: Any) -> str:
    if isinstance(fact, list | tuple):
        return ", ".join(map(str, fact)) or "none"
    return "none" if fact is None else str(fact)
