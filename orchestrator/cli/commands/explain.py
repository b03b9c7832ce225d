"""`isolane explain`: what happened in a run, told in order, and how it stands now and why.

An operator without an API key is told in the platform's own words only, as with `isolane executions`.

Timing: request-time. Model: sync. Guarantee: reads only. Failure: bubble, as one line.
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
from orchestrator.cli.support.parsing import plain, story_line
from orchestrator.cli.support.platform import PlatformCommand
from tenants.scope import tenant_scope

BATCH = 500  # events that are read at once


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """Some of the story, and how the run stood when it was read."""

    told: list[dict[str, Any]]
    stands: dict[str, Any]
    withheld: bool


@click.command(cls=PlatformCommand)
@click.argument("execution_id")
@tenant_options
@click.option("--json", "as_json", is_flag=True, help="For programs, one JSON object a line.")
def explain(*, execution_id: str, tenant: str, api_key: str | None, as_json: bool) -> None:
    """Tell what happened in a run, a sentence for each event, and how it stands now and why.

    Every placement, loss, hand-over and refusal is among it. Times are UTC.
    """
    identity = CommandIdentity(tenant, api_key)
    day, after, more = "", 0, True
    while more:
        piece = _read(identity, execution_id, after)
        for event in piece.told:
            if as_json:
                click.echo(json.dumps(event, default=str))
                continue
            at = datetime.fromisoformat(event["at"]).astimezone(UTC)
            if day != f"{at:%Y-%m-%d}":
                day = f"{at:%Y-%m-%d}"
                click.echo(day)
            click.echo(story_line(at, event["text"]))
        more = len(piece.told) == BATCH
        after = piece.told[-1]["sequence"] if more else after
    click.echo(json.dumps(piece.stands) if as_json else f"now: {plain(piece.stands['now'])}")
    if piece.withheld:
        click.echo(HINT, err=True)


def _read(identity: CommandIdentity, execution_id: str, after: int) -> Piece:
    with tenant_scope(identity.tenant), snapshot():
        run = find_execution(execution_id, identity.reach)
        found = list(EventSerializer(events(run, after=after)[:BATCH], many=True).data)
        standing = status_of(run)
    withheld = not identity.sees_data(run.blueprint_version.blueprint.name)
    if withheld:
        found = [event_without_data(event) for event in found]
        standing = status_without_data(standing)
    return Piece(
        told=[_told(event) for event in found],
        stands={"state": run.state, "now": describe_status(standing)},
        withheld=withheld,
    )


def _told(event: dict[str, Any]) -> dict[str, Any]:
    """An event as it is rendered, told instead of its data."""
    shown = {name: value for name, value in event.items() if name != "data"}
    return {**shown, "text": describe_event(event["kind"], event["step"], event["data"])}
