"""`isolane explain`: the events of a run as sentences, and its status with the reason.

An operator without an API key sees the platform's own values only, as with `isolane executions`.

Timing: request-time.
Model: sync.
Guarantee: reads only.
Failure: bubble, as one line.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click

from executions.api.serializers.history import EventSerializer
from executions.api.withholding import event_without_data, status_without_data
from executions.explain.events import describe_event
from executions.explain.query import status_of
from executions.explain.status import describe_status
from executions.selectors.executions import find_execution, snapshot
from executions.selectors.history import events
from orchestrator.cli.support.identity import HINT, CommandIdentity, tenant_options
from orchestrator.cli.support.parsing import event_line, plain
from orchestrator.cli.support.platform import PlatformCommand
from tenants.scope import tenant_scope

BATCH = 500  # events that are read at once


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplanationPage:
    """Some events of a run, and its status when they were read."""

    events: list[dict[str, Any]]
    status: dict[str, Any]
    is_withheld: bool  # the tenant's data is left out


@click.command(cls=PlatformCommand)
@click.argument("execution_id")
@tenant_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line, for programs."
)
def explain(*, execution_id: str, tenant: str, api_key: str | None, as_json: bool) -> None:
    """Explain the run EXECUTION_ID: a sentence for each event, then its status with the reason.

    Events include every placement, lost worker, handover and refusal. Times are UTC.
    """
    identity = CommandIdentity(tenant, api_key)
    day, after, more = "", 0, True
    while more:
        page = _read(identity, execution_id, after)
        for event in page.events:
            if as_json:
                click.echo(json.dumps(event, default=str))
                continue
            at = datetime.fromisoformat(event["at"]).astimezone(UTC)
            if day != f"{at:%Y-%m-%d}":
                day = f"{at:%Y-%m-%d}"
                click.echo(day)
            click.echo(event_line(at, event["text"]))
        more = len(page.events) == BATCH
        after = page.events[-1]["sequence"] if more else after
    click.echo(json.dumps(page.status) if as_json else f"now: {plain(page.status['now'])}")
    if page.is_withheld:
        click.echo(HINT, err=True)


def _read(identity: CommandIdentity, execution_id: str, after: int) -> ExplanationPage:
    with tenant_scope(identity.tenant), snapshot():
        run = find_execution(execution_id, identity.reach)
        found = list(EventSerializer(events(run, after=after)[:BATCH], many=True).data)
        status = status_of(run)
    is_withheld = not identity.sees_data(run.blueprint_version.blueprint.name)
    if is_withheld:
        found = [event_without_data(event) for event in found]
        status = status_without_data(status)
    return ExplanationPage(
        events=[_sentence(event) for event in found],
        status={"state": run.state, "now": describe_status(status)},
        is_withheld=is_withheld,
    )


def _sentence(event: dict[str, Any]) -> dict[str, Any]:
    """Return a rendered event with a sentence instead of its data."""
    shown = {name: value for name, value in event.items() if name != "data"}
    return {**shown, "text": describe_event(event["kind"], event["step"], event["data"])}
