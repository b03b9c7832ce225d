"""The published JSON Schema of a blueprint; the reference in the docs is generated from it. Pure data.

Every field has a description and an example. The order of the fields is that of written documents.
"""

from typing import Any

from executions.blueprints.durations import PATTERN
from executions.blueprints.plan import (
    DEFAULT_ATTEMPTS,
    DEFAULT_RUN_TIMEOUT,
    DEFAULT_STEP_TIMEOUT,
    FailureMode,
    Guarantee,
)
from foundation.limit_bounds import LIMIT_BOUNDS
from tenants.isolation import Isolation

KEY = "^[a-z][a-z0-9_-]{0,62}$"

_USES: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 200}
_PARAMETERS: dict[str, Any] = {"type": "object", "default": {}}
_MODES = [mode.value for mode in FailureMode]

RETRY: dict[str, Any] = {
    "type": "object",
    "description": "Number of attempts of a failing step; only with `on_failure: retry`.",
    "additionalProperties": False,
    "default": {"attempts": DEFAULT_ATTEMPTS, "then": FailureMode.ABORT.value},
    "examples": [{"attempts": 5, "then": "continue"}],
    "properties": {
        "attempts": {
            "type": "integer",
            "minimum": 2,
            "maximum": 20,
            "default": DEFAULT_ATTEMPTS,
            "description": "Maximum number of attempts, including the first.",
            "examples": [5],
        },
        "then": {
            "enum": [mode for mode in _MODES if mode != FailureMode.RETRY],
            "default": FailureMode.ABORT.value,
            "description": "Failure mode when no attempt is left, or when the error is never retried.",
            "examples": ["continue"],
        },
    },
}

RECOVER: dict[str, Any] = {
    "type": "object",
    "description": "Node that runs in place of the failed step; its output becomes the step's.",
    "required": ["uses"],
    "additionalProperties": False,
    "examples": [{"uses": "data.map", "with": {"values": {"why": "${error.code}"}}}],
    "properties": {
        "uses": {**_USES, "description": "Name of the node.", "examples": ["data.map"]},
        "with": {
            **_PARAMETERS,
            "description": "Its parameters; may refer to `${error.code}`, `${error.message}` and `${error.step}`.",
            "examples": [{"values": {"why": "${error.code}"}}],
        },
    },
}

STEP: dict[str, Any] = {
    "type": "object",
    "required": ["key", "uses"],
    "additionalProperties": False,
    "properties": {
        "key": {
            "type": "string",
            "pattern": KEY,
            "description": "Name, unique in the blueprint: a lowercase letter, then lowercase letters, digits, - or _.",
            "examples": ["fetch"],
        },
        "uses": {
            **_USES,
            "description": "Name of the node that does the work, or `task:package.module.function`.",
            "examples": ["data.map"],
        },
        "with": {
            **_PARAMETERS,
            "description": "Parameters of the node; values may hold references.",
            "examples": [{"values": {"total": "${steps.price.total}"}}],
        },
        "when": {
            "type": "string",
            "maxLength": 1100,
            "description": "Exactly one reference; the step is skipped if it is null, false or empty.",
            "examples": ["${steps.check.ok}"],
        },
        "on_failure": {
            "enum": _MODES,
            "default": FailureMode.ABORT.value,
            "description": "Effect of a failure: end the run, go on, retry, or run a recovery node.",
            "examples": ["retry"],
        },
        "retry": RETRY,
        "timeout": {
            "type": "string",
            "pattern": PATTERN,
            "default": DEFAULT_STEP_TIMEOUT,
            "description": "Time limit of an attempt, such as 500ms, 30s, 5m or 1h; between 10 ms and 24 h.",
            "examples": ["5m"],
        },
        "guarantee": {
            "enum": [guarantee.value for guarantee in Guarantee],
            "default": Guarantee.AT_LEAST_ONCE.value,
            "description": "Promise for the case that a worker is lost; the node must be able to keep it.",
            "examples": ["at_most_once"],
        },
        "idempotency_key": {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "description": "Key by which a remote server recognises a repeated request; may hold references.",
            "examples": ["invoice-${inputs.invoice_id}"],
        },
        "recover": RECOVER,
        "sensitive": {
            "type": ["boolean", "array"],
            "maxItems": 100,
            "uniqueItems": True,
            "items": {"type": "string", "minLength": 1, "maxLength": 100},
            "default": False,
            "description": "true for the whole output, or the names of its fields and of variables that the step sets:"
            " encrypted at rest, masked when shown.",
            "examples": [["card_number"]],
        },
    },
}


def _limit(name: str, description: str, example: float) -> dict[str, Any]:
    bounds = LIMIT_BOUNDS[name]
    return {
        "type": "integer" if bounds.whole else "number",
        "minimum": bounds.least,
        "maximum": bounds.most,
        "description": description,
        "examples": [example],
    }


LIMITS: dict[str, Any] = {
    "type": "object",
    "description": "Limits of what a run may use; those of the tenant win where they are stricter.",
    "additionalProperties": False,
    "default": {},
    "examples": [{"cpu": 0.5, "ram_mb": 256}],
    "properties": {
        "cpu": _limit("cpu", "Processors.", 0.5),
        "ram_mb": _limit("ram_mb", "RAM in MiB.", 256),
        "processes": _limit("processes", "Processes and threads.", 16),
        "disk_mb": _limit("disk_mb", "Files that it writes, in MiB.", 50),
        "open_files": _limit("open_files", "Open files of each process.", 128),
        "output_kb": _limit("output_kb", "Log lines of one attempt of a step, in KiB.", 64),
        "connections": _limit(
            "connections", "Connections through the gate, open at the same time.", 8
        ),
        "network_mb": _limit(
            "network_mb", "Data sent and received through the gate, both together, in MiB.", 512
        ),
        "idle_seconds": _limit(
            "idle_seconds",
            "Seconds without a byte after which a connection through the gate is closed.",
            60,
        ),
    },
}

RESOURCE: dict[str, Any] = {
    "type": "object",
    "required": ["type", "definition"],
    "additionalProperties": False,
    "properties": {
        "type": {
            "type": "string",
            "pattern": "^[a-z][a-z0-9_.-]{0,99}$",
            "description": "`database`, `http_api`, `model`, `cache`, or a plugin's type.",
            "examples": ["database"],
        },
        "definition": {
            "type": "string",
            "pattern": KEY,
            "description": "Name of the tenant's resource definition: a lowercase letter, then lowercase letters,"
            " digits, - or _, up to 63.",
            "examples": ["billing-db"],
        },
        "scope": {
            "enum": ["execution", "step"],
            "description": "`execution`: all steps of a run share it; `step`: each opens its own. The default is the"
            " definition's scope; `execution` may be narrowed to `step`, never widened.",
            "examples": ["step"],
        },
        "eager": {
            "type": "boolean",
            "default": False,
            "description": "Open with the run's context instead of on first use; only with scope `execution`.",
            "examples": [True],
        },
    },
}

DOCUMENT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Blueprint",
    "description": "A workflow: steps that run in order, each a node with parameters.",
    "type": "object",
    "required": ["name", "steps"],
    "additionalProperties": False,
    "properties": {
        "name": {
            "type": "string",
            "pattern": "^[a-z0-9][a-z0-9._-]{0,99}$",
            "description": "Name to publish under: lowercase letters, digits, dots, - and _, up to 100.",
            "examples": ["invoice-sync"],
        },
        "description": {
            "type": "string",
            "maxLength": 2000,
            "description": "Text for people.",
            "examples": ["Fetches an invoice and pays it."],
        },
        "inputs": {
            "type": "object",
            "default": {},
            "description": "JSON Schema of a run's inputs. A property marked `sensitive: true` is encrypted at rest and"
            " masked when shown.",
            "examples": [{"required": ["id"], "properties": {"id": {"type": "integer"}}}],
        },
        "outputs": {
            "type": "object",
            "maxProperties": 100,
            "propertyNames": {"maxLength": 100},
            "default": {},
            "description": "Outputs of a run; values may hold references to every step.",
            "examples": [{"total": "${steps.price.total}"}],
        },
        "isolation": {
            "enum": [level.value for level in Isolation],
            "description": "Isolation level of the steps' code; a stricter level required by the tenant wins.",
            "examples": ["process"],
        },
        "express": {
            "type": "boolean",
            "default": False,
            "description": "Run all steps in one link: faster, but one row in Flower instead of one per step.",
            "examples": [True],
        },
        "timeout": {
            "type": "string",
            "pattern": PATTERN,
            "default": DEFAULT_RUN_TIMEOUT,
            "description": "Total time that a run may hold a slot, such as 90s, 30m or 2d; between 1 s and 7 d.",
            "examples": ["2h"],
        },
        "budget": {
            "type": "object",
            "maxProperties": 20,
            "propertyNames": {
                "pattern": "^[a-z][a-z0-9_]{0,39}$",
                "description": "a kind of cost is a lowercase letter, then lowercase letters, digits or _, up to 40.",
            },
            "additionalProperties": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e12},
            "default": {},
            "description": "Limit of each kind of cost of a run, in the units that its nodes report.",
            "examples": [{"tokens": 20000, "eur": 1.5}],
        },
        "limits": LIMITS,
        "labels": {
            "type": "object",
            "maxProperties": 20,
            "propertyNames": {
                "pattern": "^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$",
                "description": "a label's name has letters, digits, dots, slashes, - and _, up to 63.",
            },
            "additionalProperties": {"type": "string", "maxLength": 200},
            "default": {},
            "description": "Labels to find runs by.",
            "examples": [{"team": "billing"}],
        },
        "resources": {
            "type": "object",
            "maxProperties": 50,
            "propertyNames": {
                "pattern": KEY,
                "description": "a resource name is a lowercase letter, then lowercase ones, digits, - or _, up to 63.",
            },
            "additionalProperties": RESOURCE,
            "default": {},
            "description": "Resources of the steps, by the names that their code uses.",
            "examples": [{"billing": {"type": "database", "definition": "billing-db"}}],
        },
        "steps": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1000,
            "items": STEP,
            "description": "Steps, in the order in which they run.",
            "examples": [[{"key": "fetch", "uses": "invoices.fetch"}]],
        },
    },
}
