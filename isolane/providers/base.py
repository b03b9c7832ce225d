"""What a type of resource does inside a runtime. Importing a provider imports no driver: web reads `config`, too."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from isolane.protocol import Grant

H = TypeVar("H")
Config: TypeAlias = type[Any]  # `type` means something else inside the class

DISPOSE_SECONDS = 2.0


class Provider(ABC, Generic[H]):
    """Opens handles of one type; made once per process, keeps no state of any execution."""

    type: ClassVar[str]
    config: ClassVar[
        Config
    ]  # a frozen dataclass, which isolane.shapes builds from a definition's config
    secrets: ClassVar[Mapping[str, str]] = {}  # name to what it is, of the secrets that it takes
    dispose_s: ClassVar[float] = DISPOSE_SECONDS  # then a disposal counts as hanging

    def check_definition(self, config: Any, secrets: frozenset[str]) -> None:
        """Refuse with ValueError("field: why, and the way out") what the config's types cannot say.

        `config` is a built `self.config`, `secrets` are the names of the secrets that the definition refers to.
        """

    @abstractmethod
    def create(self, grant: Grant, tag: str) -> H:
        """Open a handle, tagged to the far side; what was half made is gone when this raises."""

    @abstractmethod
    def check(self, handle: H) -> dict[str, Any]:
        """Ask the far side for a sign of life; returns what it says of this connection, or raises."""

    def is_broken(self, handle: H) -> bool:
        """Whether the far side is known to be gone; asked, without I/O, before it is handed out again."""
        return False

    @abstractmethod
    def dispose(self, handle: H) -> None:
        """Close it for good: the handle raises when it is used afterwards."""
