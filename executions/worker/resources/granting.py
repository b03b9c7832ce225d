"""What a placement is given of the resources that its blueprint declares.

Timing: background-worker, while a context opens. Model: sync; each far side has a few seconds to answer.
Guarantee: what will outlive a socket is committed to the ledger, fenced, before it is made. Secrets are resolved for
declared resources only, and known to the run's masker before anything else knows them.
Failure: ResourceNotGranted says with which code the step fails, PlacementOver that it must not even fail; what was
made is
revoked with the context.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from executions.blueprints.plan import DeclaredResource
from executions.blueprints.validation.resources import mismatch, scope_of
from executions.models.sealing import seal
from executions.placement.run_scope import run_scope
from executions.transitions.ledger import Thing, commit_issue
from executions.worker.links.context import OpenContext
from executions.worker.resources.tracking import tell
from foundation.errors import IsolaneError
from isolane.protocol import Grant
from isolane.results import Code
from resources.addresses import AddressRefused, host_and_port, policy_from_settings, resolve
from resources.issuers.base import Ask, FarThing, IssueError, Issuer
from resources.issuers.registry import issuer_of
from resources.selectors import DefinitionRef, definitions
from resources.services import secrets
from tenants.selectors import schema_of


class ResourceNotGranted(Exception):
    """A declared resource cannot be had; the step fails with this."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class PlacementOver(Exception):
    """The fence refused, or a cancel was asked for: nothing was issued, and the step must not begin."""


def grant_resources(context: OpenContext, *, seconds_left: float) -> tuple[Grant, ...]:
    """Resolve and issue what the run declares, or raise ResourceNotGranted."""
    declared = context.run.plan.resources
    if not declared:
        return ()
    asks = _asks(context, declared, seconds_left)
    issued = _issue(context, list({ask.definition: ask for ask in asks}.values()))
    # Names of one definition are one thing at the far side.
    grants = tuple(
        replace(issued[ask.definition], name=ask.name, scope=ask.scope, eager=ask.eager)
        for ask in asks
    )
    context.run.memory.masker.learn_secrets(
        secret for grant in grants for secret in grant.secrets.values()
    )
    return grants


def _asks(
    context: OpenContext, declared: tuple[DeclaredResource, ...], seconds_left: float
) -> list[Ask]:
    placement = context.placement
    with run_scope(placement.tenant_id):
        defined = definitions({resource.definition for resource in declared})
        _refuse_mismatches(declared, defined)
        values = _secrets(schema_of(placement.tenant_id), defined)
    context.run.memory.masker.learn_secrets(
        secret for of_one in values.values() for secret in of_one.values()
    )
    addresses = {name: _address(definition) for name, definition in defined.items()}
    return [
        Ask(
            tenant=schema_of(placement.tenant_id),
            execution_id=placement.execution_id,
            epoch=placement.epoch,
            name=resource.name,
            type=resource.type,
            definition=resource.definition,
            scope=scope_of(resource, defined[resource.definition]),
            eager=resource.eager,
            config=defined[resource.definition].config,
            secrets=values[resource.definition],
            address=addresses[resource.definition],
            seconds_left=seconds_left,
        )
        for resource in declared
    ]


def _refuse_mismatches(
    declared: tuple[DeclaredResource, ...], defined: Mapping[str, DefinitionRef]
) -> None:
    for resource in declared:
        if reason := mismatch(resource, defined.get(resource.definition)):
            raise ResourceNotGranted(Code.POLICY_VIOLATION, f"Resource {resource.name!r}: {reason}")


def _secrets(tenant: str, defined: Mapping[str, DefinitionRef]) -> dict[str, dict[str, str]]:
    try:
        return {
            name: secrets.resolve(tenant, definition.secrets, definition.sealed)
            for name, definition in defined.items()
        }
    except IsolaneError as error:
        raise ResourceNotGranted(Code.RESOURCE_ERROR, str(error)) from None


def _address(definition: DefinitionRef) -> str:
    try:
        place = host_and_port(definition.type, definition.config)
        return resolve(*place, policy_from_settings()) if place else ""
    except AddressRefused as refused:
        message = f"The definition {definition.name!r} cannot be used: {refused}"
        raise ResourceNotGranted(Code.POLICY_VIOLATION, message) from None
    except IsolaneError as error:
        message = f"The definition {definition.name!r} cannot be used: {error}"
        raise ResourceNotGranted(Code.RESOURCE_ERROR, message) from None


def _issue(context: OpenContext, asks: list[Ask]) -> dict[str, Grant]:
    """Commit all that will be made, then make it."""
    planned = [(ask, issuer_of(ask.type)) for ask in asks]
    try:
        things = {ask.definition: issuer.things(ask) if issuer else () for ask, issuer in planned}
        _commit(context, planned, things)
    except IssueError as error:
        raise _not_issued(context, error) from None
    granted: dict[str, Grant] = {}
    for ask, issuer in planned:
        try:
            granted[ask.definition] = _made(issuer, ask, things)
        except IssueError as error:
            untouched = [other for other, _ in planned if other.definition not in granted]
            unmade = untouched if error.nothing_made else untouched[1:]
            _forget(context, [thing for other in unmade for thing in things[other.definition]])
            raise _not_issued(context, error) from None
    return granted


def _not_issued(context: OpenContext, error: IssueError) -> ResourceNotGranted:
    return ResourceNotGranted(Code.RESOURCE_ERROR, context.run.memory.masker.mask(str(error)))


def _forget(context: OpenContext, things: Sequence[FarThing]) -> None:
    """These were certainly not made: nobody has to revoke them."""
    gone = {(thing.kind, thing.far_id) for thing in things}
    context.issued[:] = [
        pair for pair in context.issued if (pair[1].kind, pair[1].far_id) not in gone
    ]
    for thing in things:
        tell(context, "failed", context.holdings.never_made(thing.far_id, "not issued"))


def _commit(
    context: OpenContext,
    planned: list[tuple[Ask, Issuer | None]],
    things: Mapping[str, Sequence[FarThing]],
) -> None:
    rows = [
        Thing(
            kind=thing.kind,
            far_id=thing.far_id,
            type=ask.type,
            name=ask.name,
            definition=ask.definition,
            data=seal(ask.execution_id, dict(thing.data)),
        )
        for ask, _ in planned
        for thing in things[ask.definition]
    ]
    if not rows:
        return
    if len({row.far_id for row in rows}) < len(rows):
        raise IssueError("two things would have one name at the far side; the issuer is at fault.")
    with run_scope(context.placement.tenant_id):
        if not commit_issue(context.placement, rows):
            raise PlacementOver
    for ask, issuer in planned:
        for thing in things[ask.definition]:
            assert issuer is not None  # noqa: S101 - it planned the thing
            context.issued.append((issuer, thing))
            tell(
                context, "allocated", context.holdings.issued(ask.grant(), thing.kind, thing.far_id)
            )


def _made(issuer: Issuer | None, ask: Ask, things: Mapping[str, Sequence[FarThing]]) -> Grant:
    return issuer.issue(ask, things[ask.definition]) if issuer else ask.grant()
