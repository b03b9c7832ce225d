"""`isolane nodes`."""

import json
from dataclasses import asdict

import click
from rich.markup import escape
from rich.table import Table

from executions.blueprints.suggestions import instead_of
from executions.blueprints.validation.nodes import NodeInfo
from executions.services.publishing import catalogue_nodes
from foundation.errors import Forbidden, NotFound, Unavailable
from orchestrator.cli.support.django import CONSOLE
from orchestrator.cli.support.identity import api_key_option
from orchestrator.cli.support.platform import PlatformGroup
from tenants.roles import Permission
from tenants.services.api_keys import caller_of_key


@click.group(cls=PlatformGroup)
def nodes() -> None:
    """List and show the nodes that steps can use, as the workers describe them."""


@nodes.command("list")
@api_key_option
def list_(api_key: str | None) -> None:
    """List the nodes that a run submitted now can use."""
    table = Table("node", "what it does", "declared")
    for node in sorted(_known(api_key).values(), key=lambda node: node.name):
        table.add_row(node.name, escape(node.summary), _declared(node))
    CONSOLE.print(table)


@nodes.command()
@click.argument("name")
@api_key_option
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON, for programs, with the parameters as a JSON Schema.",
)
def show(*, name: str, api_key: str | None, as_json: bool) -> None:
    """Show the node NAME and its parameters."""
    known = _known(api_key)
    if name not in known:
        raise NotFound(f"There is no node {name!r}; {instead_of(name, known)}", field="name")
    node = known[name]
    if as_json:
        click.echo(json.dumps(asdict(node), indent=2, ensure_ascii=False))
        return
    click.echo(f"{node.name}: {node.summary or 'no summary'}")
    if declared := _declared(node):
        click.echo(f"Declared: {declared}")
    CONSOLE.print(_parameters(node))


def _known(api_key: str | None) -> dict[str, NodeInfo]:
    if api_key and not caller_of_key(api_key).may(Permission.BLUEPRINT_VIEW):
        raise Forbidden(f"The API key lacks {Permission.BLUEPRINT_VIEW}; see --api-key.")
    known = catalogue_nodes()
    if not known:
        raise Unavailable("No worker has started yet, so no node is known; start one.")
    return known


def _parameters(node: NodeInfo) -> Table:
    required = node.parameters.get("required", ())
    table = Table("parameter", "schema", "default")
    for name, schema in node.parameters.get("properties", {}).items():
        described = {key: value for key, value in schema.items() if key != "default"}
        default = "required" if name in required else _json(schema.get("default"))
        table.add_row(escape(name), escape(_json(described)), escape(default))
    return table


def _declared(node: NodeInfo) -> str:
    flags = {
        "idempotent": node.idempotent,
        "deterministic": node.deterministic,
        "honours its key": node.uses_key,
    }
    return ", ".join(name for name, declared in flags.items() if declared)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
