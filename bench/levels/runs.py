"""Runs of one level and of so many tenants, through the whole platform."""

from typing import Any

from bench.contenders.platform import Platform, tenants_named
from bench.levels.contenders import HOLD, STEPS, Runs, document
from tenants.provisioning import migrate


class LevelRuns(Platform):
    """A contender whose runs are its tenants' in turn."""

    steps = (*STEPS, HOLD)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._runs = Runs.named(name)

    def prepare(self) -> None:
        """Migrate the database and create the tenants."""
        migrate()
        self._tenants = tenants_named([f"tenant{n:04}" for n in range(self._runs.tenants)])

    def _document(self, steps: int) -> dict[str, Any]:
        return document(self._runs.level, steps)
