"""The published JSON Schema of a blueprint; the reference in the docs is made from it. Pure data.

Every field has a description and an example. The order of the fields is the one in which documents are written.
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
from tenants.isolation import Isolation

KEY = "^[a-z][a-z0-9_-]{0,62}$"

_USES: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 200}
_PARAMETERS: dict[str, Any] = {"type": "object", "default": {}}
_MODES = [mode.value for mode in FailureMode]

RETRY: dict[str, Any] = {
    "type": "object",
    "description": "How often a failing step is tried; only with `on_failure: retry`.",
    "additionalProperties": False,
    "default": {"attempts": DEFAULT_ATTEMPTS, "then": FailureMode.ABORT.value},
    "examples": [{"attempts": 5, "then": "continue"}],
    "properties": {
        "attempts": {
            "type": "integer",
            "minimum": 2,
            "maximum": 20,
            "default": DEFAULT_ATTEMPTS,
            "description": "How often the step runs at most, the first time included.",
            "examples": [5],
        },
        "then": {
            "enum": [mode for mode in _MODES if mode != FailureMode.RETRY],
            "default": FailureMode.ABORT.value,
            "description": "What the step acts as when no attempt is left, or when its error is never retried.",
            "examples": ["continue"],
        },
    },
}

RECOVER: dict[str, Any] = {
    "type": "object",
    "description": "The node that takes the place of the failed step; its output becomes the step's.",
    "required": ["uses"],
    "additionalProperties": False,
    "examples": [{"uses": "data.map", "with": {"values": {"why": "${error.code}"}}}],
    "properties": {
        "uses": {**_USES, "description": "The name of the node.", "examples": ["data.map"]},
        "with": {
            **_PARAMETERS,
            "description": "Its parameters; `${error.code}`, `${error.message}` and `${error.step}` are known here.",
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
            "description": "Its name, unique in the blueprint: a small letter, then small letters, digits, - or _.",
            "examples": ["fetch"],
        },
        "uses": {
            **_USES,
            "description": "The name of the node that does the work, or `task:package.module.function`.",
            "examples": ["data.map"],
        },
        "with": {
            **_PARAMETERS,
            "description": "The node's parameters; values may hold references.",
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
            "description": "What a failure does: end the run, go on, try again, or let another node take over.",
            "examples": ["retry"],
        },
        "retry": RETRY,
        "timeout": {
            "type": "string",
            "pattern": PATTERN,
            "default": DEFAULT_STEP_TIMEOUT,
            "description": "How long an attempt may take, such as 500ms, 30s, 5m or 1h; between 10 ms and 24 h.",
            "examples": ["5m"],
        },
        "guarantee": {
            "enum": [guarantee.value for guarantee in Guarantee],
            "default": Guarantee.AT_LEAST_ONCE.value,
            "description": "What holds when a worker is lost; the node must be able to give it.",
            "examples": ["at_most_once"],
        },
        "idempotency_key": {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "description": "By it a far side knows a request that it has already done; may hold references.",
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
            " encrypted at rest, masked wherever shown.",
            "examples": [["card_number"]],
        },
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
            "description": "`database`, `http_api`, `model`, `cache`, or the name of a plugin's type.",
            "examples": ["database"],
        },
        "definition": {
            "type": "string",
            "pattern": KEY,
            "description": "The name of the tenant's definition that says where it is: a small letter, then small"
            " letters, digits, - or _, up to 63.",
            "examples": ["billing-db"],
        },
        "scope": {
            "enum": ["execution", "step"],
            "description": "Whether all steps of a run share it or each opens its own; the definition's, if not said."
            " It may narrow a definition's `execution` to `step`, never widen.",
            "examples": ["step"],
        },
        "eager": {
            "type": "boolean",
            "default": False,
            "description": "Open it with the run's context, not on first use; only with scope `execution`.",
            "examples": [True],
        },
    },
}

DOCUMENT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Blueprint",
    "description": "A workflow: steps that run one after the other, each a node with parameters.",
    "type": "object",
    "required": ["name", "steps"],
    "additionalProperties": False,
    "properties": {
        "name": {
            "type": "string",
            "pattern": "^[a-z0-9][a-z0-9._-]{0,99}$",
            "description": "Under which it is published: small letters, digits, dots, - and _, up to 100.",
            "examples": ["invoice-sync"],
        },
        "description": {
            "type": "string",
            "maxLength": 2000,
            "description": "For people.",
            "examples": ["Fetches an invoice and pays it."],
        },
        "inputs": {
            "type": "object",
            "default": {},
            "description": "A JSON Schema for what a run is given. A property marked `sensitive: true` is encrypted"
            " at rest and masked wherever shown.",
            "examples": [{"required": ["id"], "properties": {"id": {"type": "integer"}}}],
        },
        "outputs": {
            "type": "object",
            "maxProperties": 100,
            "propertyNames": {"maxLength": 100},
            "default": {},
            "description": "What a run gives back; values may hold references to every step.",
            "examples": [{"total": "${steps.price.total}"}],
        },
        "isolation": {
            "enum": [level.value for level in Isolation],
            "description": "Where the steps' code runs; where the tenant requires a stricter level, that one counts.",
            "examples": ["process"],
        },
        "express": {
            "type": "boolean",
            "default": False,
            "description": "Run all steps back to back in one link: faster, but one row in Flower, not one per step.",
            "examples": [True],
        },
        "timeout": {
            "type": "string",
            "pattern": PATTERN,
            "default": DEFAULT_RUN_TIMEOUT,
            "description": "How long a run may hold a slot in all, such as 90s, 30m or 2d; between 1 s and 7 d.",
            "examples": ["2h"],
        },
        "budget": {
            "type": "object",
            "maxProperties": 20,
            "propertyNames": {
                "pattern": "^[a-z][a-z0-9_]{0,39}$",
                "description": "a kind of cost is a small letter, then small letters, digits or _, up to 40.",
            },
            "additionalProperties": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e12},
            "default": {},
            "description": "How much of each kind of cost a run may spend, in the units that its nodes report.",
            "examples": [{"tokens": 20000, "eur": 1.5}],
        },
        "labels": {
            "type": "object",
            "maxProperties": 20,
            "propertyNames": {
                "pattern": "^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$",
                "description": "a label's name has letters, digits, dots, slashes, - and _, up to 63.",
            },
            "additionalProperties": {"type": "string", "maxLength": 200},
            "default": {},
            "description": "Texts to find runs by.",
            "examples": [{"team": "billing"}],
        },
        "resources": {
            "type": "object",
            "maxProperties": 50,
            "propertyNames": {
                "pattern": KEY,
                "description": "a resource's name is a small letter, then small letters, digits, - or _, up to 63.",
            },
            "additionalProperties": RESOURCE,
            "default": {},
            "description": "What the steps use, by the name under which their code asks for it.",
            "examples": [{"billing": {"type": "database", "definition": "billing-db"}}],
        },
        "steps": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1000,
            "items": STEP,
            "description": "What is done, in this order.",
            "examples": [[{"key": "fetch", "uses": "invoices.fetch"}]],
        },
    },
}
