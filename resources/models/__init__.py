"""Tables of one tenant: where its resources are, and the secrets that open them."""

from resources.models.definition import DefinitionScope, ResourceDefinition
from resources.models.secret import Secret

__all__ = ["DefinitionScope", "ResourceDefinition", "Secret"]
