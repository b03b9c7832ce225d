"""The variables of a run, as a step sees them."""

import copy
import json
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from isolane.names import VARIABLE
from isolane.protocol import ProtocolError, dump


class Memory(MutableMapping[str, Any]):
    """The run's variables, by value: reading returns a copy, and setting stores one.

    Variables that a step sets reach the run with the step's result, and only if it succeeds.
    """

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self._variables = variables
        self._changes: dict[str, Any] = {}

    @property
    def changes(self) -> dict[str, Any]:
        """The variables that this step has set so far."""
        return copy.deepcopy(self._changes)

    def __getitem__(self, name: str) -> Any:
        kept = self._changes if name in self._changes else self._variables
        return copy.deepcopy(kept[name])

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a variable's name must be a str, not {type(name).__name__}")
        if not VARIABLE.fullmatch(name):
            raise ValueError(f"variable {name[:64]!r} does not match {VARIABLE.pattern}")
        try:
            self._changes[name] = json.loads(dump(value))
        except ProtocolError as error:
            raise ValueError(f"variable {name} cannot hold {_shown(value)}: {error}") from None

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"variable {name!r}: a run's variables are not deleted; set it to None")

    def __iter__(self) -> Iterator[str]:
        return iter({**self._variables, **self._changes})

    def __len__(self) -> int:
        return len({**self._variables, **self._changes})

    def __repr__(self) -> str:
        return f"Memory({', '.join(self)})"  # names only: values may be secret


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str | bytes | float) else type(value).__name__
    return text[:64]
