"""A definition as a plain value, for validation and for workers. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from isolane.protocol import ResourceScope


@dataclass(frozen=True, kw_only=True, slots=True)
class DefinitionRef:
    """One definition of a tenant; holds references to secrets, never their values."""

    name: str
    type: str
    config: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)  # references
    sealed: Mapping[str, str] = field(default_factory=dict)  # the stored ones, still encrypted
    scope: ResourceScope = "step"  # the widest that a blueprint may ask for
