"""The provider of a resource type, inside a runtime. Importing one imports no driver: web reads `config`, too."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from isolane.protocol import Grant

H = TypeVar("H")
Config: TypeAlias = type[Any]  # `type` means something else inside the class

DISPOSE_SECONDS = 2.0


class Provider(ABC, Generic[H]):
    """Opens handles of one type; created once per process, keeps no state of any execution."""

    type: ClassVar[str]
    config: ClassVar[
        Config
    ]  # a frozen dataclass, which isolane.shapes builds from a definition's config
    secrets: ClassVar[Mapping[str, str]] = {}  # name to description, of the secrets that it takes
    drivers: ClassVar[tuple[str, ...]] = ()  # modules that `create` imports, of a built-in type
    dispose_s: ClassVar[float] = DISPOSE_SECONDS  # after which a disposal counts as hanging

    def check_definition(self, config: Any, secrets: frozenset[str]) -> None:
        """Refuse with ValueError("field: reason, and the way out") what the config's types cannot express.

        `config` is a built `self.config`, `secrets` are the names of the secrets that the definition refers to.
        """

    @abstractmethod
    def create(self, grant: Grant, tag: str) -> H:
        """Open a handle that carries the tag to the remote server; if this raises, nothing stays half open."""

    @abstractmethod
    def check(self, handle: H) -> dict[str, Any]:
        """Ask the remote server for a sign of life; return its answer about this connection, or raise."""

    def is_broken(self, handle: H) -> bool:
        """Say, without I/O, whether the connection is known to be lost; called before a handle is reused."""
        return False

    @abstractmethod
    def dispose(self, handle: H) -> None:
        """Close the handle for good: it raises when it is used afterwards."""
