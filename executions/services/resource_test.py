"""The test of a definition: an ordinary run that opens it, checks that the server answers, and disposes of it.

Timing: request-time; the run itself happens in a worker's runtime, never here.
Model: sync.
Guarantee: as any submission's.
Failure: bubble, as an IsolaneError with code and field.
"""

from typing import Any

from executions.models import Execution
from executions.services.publishing import publish
from executions.submission.submit import RunRequest, submit
from resources.models import ResourceDefinition
from resources.selectors import definition
from tenants.scope import TenantRef, tenant_scope

PREFIX = "resource-check."
NODE = "resources.check"
RESOURCE = "checked"


def check_resource(
    tenant: TenantRef, name: str, *, requested_by: str, request_id: str = ""
) -> Execution:
    """Submit the test run; the output of its only step is the answer of the remote server."""
    with tenant_scope(tenant):
        published = publish(check_document(definition(name)))
    return submit(
        tenant,
        RunRequest(
            blueprint=published.name,
            version=published.number,
            inputs={},
            requested_by=requested_by,
            request_id=request_id,
        ),
    ).execution


def blueprint_of(name: str) -> str:
    """Return the name of the blueprint that tests a definition."""
    return f"{PREFIX}{name}"


def check_document(found: ResourceDefinition) -> dict[str, Any]:
    """Return the blueprint of the test; equal for equal definitions, so that a second test makes no new version."""
    return {
        "name": blueprint_of(found.name),
        "description": "Made by 'isolane resources test': opens the definition, asks, disposes.",
        "resources": {RESOURCE: {"type": found.type, "definition": found.name}},
        "steps": [{"key": "check", "uses": NODE, "with": {"resource": RESOURCE}}],
    }
