"""Tables of one tenant: its resource definitions and its secrets."""

from resources.models.definition import DefinitionScope, ResourceDefinition
from resources.models.secret import Secret

__all__ = ["DefinitionScope", "ResourceDefinition", "Secret"]
