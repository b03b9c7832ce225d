"""The grants of a placement: each resource that its blueprint declares, resolved and issued.

Secrets are resolved for declared resources only, and the run's masker knows them before anything else does. Issued
credentials are revoked with the context.

Timing: background-worker, while a context opens.
Model: sync; each remote server has a few seconds to answer.
Guarantee: credentials are in the ledger, fenced, before they are made; secrets are masked from the start.
Failure: ResourceNotGranted fails the step with its code; PlacementOver means that it must not even fail.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from executions.blueprints.plan import DeclaredResource
from executions.blueprints.validation.resources import mismatch, scope_of
from executions.placement.run_scope import run_scope
from executions.transitions.ledger import commit_issue
from executions.worker.links.context import OpenContext
from executions.worker.resources.tracking import log_resource
from foundation.errors import IsolaneError
from isolane.protocol import Grant
from isolane.results import Code
from resources.addresses import AddressRefused, host_and_port, policy_from_settings, resolve
from resources.credentials import Credential, ResourceRequest
from resources.definition_ref import DefinitionRef
from resources.issuers.base import IssueError, Issuer
from resources.issuers.registry import issuer_of
from resources.selectors import definitions
from resources.services import secrets
from tenants.selectors import schema_of

# A request, its type's issuer if it has one, and the credentials that this issuer will make.
Planned = tuple[ResourceRequest, Issuer | None, Sequence[Credential]]


class ResourceNotGranted(Exception):
    """A declared resource cannot be granted; the step fails with this code and message."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class PlacementOver(Exception):
    """The fence refused, or the run was cancelled: nothing was issued, and the step must not begin."""


def grant_resources(context: OpenContext, *, seconds_left: float) -> tuple[Grant, ...]:
    """Resolve and issue the resources that the run declares, or raise ResourceNotGranted."""
    declared = context.run.plan.resources
    if not declared:
        return ()
    requests = _requests(context, declared, seconds_left)
    issued = _issue(context, list({request.definition: request for request in requests}.values()))
    # Names of one definition share its credentials.
    grants = tuple(
        replace(
            issued[request.definition], name=request.name, scope=request.scope, eager=request.eager
        )
        for request in requests
    )
    context.run.memory.masker.learn_secrets(
        secret for grant in grants for secret in grant.secrets.values()
    )
    return grants


def _requests(
    context: OpenContext, declared: tuple[DeclaredResource, ...], seconds_left: float
) -> list[ResourceRequest]:
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
        ResourceRequest(
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


def _issue(context: OpenContext, requests: list[ResourceRequest]) -> dict[str, Grant]:
    """Commit all credentials to the ledger, then issue them; returns the grants by definition."""
    issuers = [(request, issuer_of(request.type)) for request in requests]
    try:
        planned = [
            (request, issuer, issuer.plan(request) if issuer else ()) for request, issuer in issuers
        ]
        _commit(context, planned)
    except IssueError as error:
        raise _not_issued(context, error) from None
    granted: dict[str, Grant] = {}
    for position, (request, issuer, credentials) in enumerate(planned):
        try:
            granted[request.definition] = (
                issuer.issue(request, credentials) if issuer else request.grant()
            )
        except IssueError as error:
            untouched = planned[position if error.nothing_made else position + 1 :]
            _forget(context, [one for _, _, unmade in untouched for one in unmade])
            raise _not_issued(context, error) from None
    return granted


def _not_issued(context: OpenContext, error: IssueError) -> ResourceNotGranted:
    return ResourceNotGranted(Code.RESOURCE_ERROR, context.run.memory.masker.mask(str(error)))


def _forget(context: OpenContext, credentials: Sequence[Credential]) -> None:
    """Drop credentials that were certainly not made: they need no revocation."""
    gone = {(credential.kind, credential.remote_id) for credential in credentials}
    context.credentials[:] = [
        (issuer, kept)
        for issuer, kept in context.credentials
        if (kept.kind, kept.remote_id) not in gone
    ]
    for credential in credentials:
        log_resource(context, "failed", context.tracker.end_not_issued(credential.remote_id))


def _commit(context: OpenContext, planned: Sequence[Planned]) -> None:
    rows = [
        (request, credential) for request, _, credentials in planned for credential in credentials
    ]
    if not rows:
        return
    if len({credential.remote_id for _, credential in rows}) < len(rows):
        raise IssueError(
            "two credentials would have one name at the remote server; the issuer is at fault."
        )
    with run_scope(context.placement.tenant_id):
        if not commit_issue(context.placement, rows):
            raise PlacementOver
    for request, issuer, credentials in planned:
        for credential in credentials:
            assert issuer is not None  # noqa: S101 - it planned the credential
            context.credentials.append((issuer, credential))
            tracked = context.tracker.add_credential(
                request.grant(), credential.kind, credential.remote_id
            )
            log_resource(context, "allocated", tracked)
