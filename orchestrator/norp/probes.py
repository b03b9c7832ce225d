"""The blueprints that the tests run: of built-in nodes only, which every deployment has. Pure."""

from dataclasses import dataclass
from typing import Any

from orchestrator.norp.criteria import NODES
from tenants.scope import TenantRef

PREFIX = "norp."
RESOURCE = "probed"
CACHE = "cache"
HOLD_S = 0.5  # so that the watcher surely sees the connection
HOLD_EACH_S = 0.25  # of several nodes
TIMEOUT = "500ms"
FOREVER_S = 30.0
Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbedDefinition:
    """The definition that is probed, and its tenant."""

    tenant: TenantRef
    definition: str
    type: str


def one_node(subject: ProbedDefinition, level: str, name: str = "one") -> Document:
    """Return a probe that opens the resource and holds it; in a cache it also sets a key."""
    return _document(subject, level, name, _check("n1", hold_s=HOLD_S))


def several_nodes(subject: ProbedDefinition, level: str) -> Document:
    """Return a probe whose nodes all use the same resource."""
    checks = [_check(f"n{number}", hold_s=HOLD_EACH_S) for number in range(1, NODES + 1)]
    return _document(subject, level, "several", *checks, entry=False)


def asking(subject: ProbedDefinition, level: str) -> Document:
    """Return a probe that asks for the resource named by its input."""
    given = {
        "type": "object",
        "required": ["resource"],
        "properties": {"resource": {"type": "string"}},
    }
    check = _check("n1", resource="${inputs.resource}")
    return {**_document(subject, level, "asking", check, entry=False), "inputs": given}


def failing(subject: ProbedDefinition, level: str) -> Document:
    """Return a probe whose second node raises: no resource is declared under a handle's id."""
    second = _check("n2", resource="${steps.n1.resource_id}")
    return _document(subject, level, "failing", _check("n1", hold_s=HOLD_S), second)


def overdue(subject: ProbedDefinition, level: str) -> Document:
    """Return a probe whose second node exceeds its timeout."""
    second = {**_check("n2", hold_s=FOREVER_S), "timeout": TIMEOUT}
    return _document(subject, level, "overdue", _check("n1", hold_s=HOLD_EACH_S), second)


def _document(
    subject: ProbedDefinition, level: str, name: str, *steps: Document, entry: bool = True
) -> Document:
    keep = {
        "key": "keep",
        "uses": "cache.set",
        "with": {"resource": RESOURCE, "key": "probe", "value": "kept until the run ends"},
    }
    return {
        "name": f"{PREFIX}{name}.{subject.definition}",
        "description": "Made by 'isolane norp': a probe of the NORP-006 compliance tests.",
        "isolation": level,
        "resources": {
            RESOURCE: {
                "type": subject.type,
                "definition": subject.definition,
                "scope": "execution",
            }
        },
        "steps": [keep, *steps] if entry and subject.type == CACHE else list(steps),
    }


def _check(key: str, *, resource: str = RESOURCE, hold_s: float = 0.0) -> Document:
    return {"key": key, "uses": "resources.check", "with": {"resource": resource, "hold_s": hold_s}}
