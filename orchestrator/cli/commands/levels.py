"""`isolane levels`: the isolation levels that this machine can offer."""

import json

import click
from django.conf import settings

from resources.runtimes.base import RuntimeBackend
from resources.runtimes.registry import build_backends
from tenants.isolation import Isolation

NOT_BUILT = "this version has no such runtime"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def levels(*, as_json: bool) -> None:
    """Try every isolation level on this machine, as a worker does when it starts, and say why one is not available.

    Run it as the workers' user. Exit 1 if no level is available.
    """
    backends = build_backends(settings.RUNTIMES)
    try:
        found = [_report(level, backends.get(level)) for level in Isolation.values]
    finally:
        for backend in backends.values():
            backend.stop()
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        for report in found:
            _print(report)
    if not any(report["available"] for report in found):
        raise SystemExit(1)


def _report(level: str, backend: RuntimeBackend | None) -> dict[str, object]:
    if backend is None:
        return {"level": level, "available": False, "reason": NOT_BUILT, "facts": []}
    found = backend.availability()
    facts = list(backend.facts()) if found.ok else []
    return {"level": level, "available": found.ok, "reason": found.reason, "facts": facts}


def _print(report: dict[str, object]) -> None:
    state = "available" if report["available"] else f"not available: {report['reason']}"
    click.echo(f"{report['level']:<11} {state}")
    for fact in report["facts"]:  # type: ignore[attr-defined]  # a list, as built above
        click.echo(f"{'':<11}   {fact}")
