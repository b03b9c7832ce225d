"""The effects of a test's steps, read from their files."""

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from executions.models import Execution, ExecutionEvent
from tenants.scope import TenantRef, tenant_scope
from tests.acceptance.survival.nodes import FILE


class Mark(NamedTuple):
    """One beginning or end of an effect."""

    what: str
    execution_id: str
    step: str
    epoch: int
    attempt: int
    at: float


class Judge:
    """A folder that steps write to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / FILE
        self._file.touch()

    def marks(self) -> list[Mark]:
        """All of them, in their order."""
        return [Mark(*json.loads(line)) for line in self._file.read_text().splitlines()]

    def starts(self, run: Execution) -> "Counter[str]":
        """Count the starts of each step of a run."""
        return Counter(
            mark.step
            for mark in self.marks()
            if mark.what == "start" and mark.execution_id == str(run.pk)
        )

    def epochs(self, run: Execution, step: str) -> list[int]:
        """The placements in which a step has begun."""
        return [
            mark.epoch
            for mark in self.marks()
            if (mark.what, mark.execution_id, mark.step) == ("start", str(run.pk), step)
        ]

    def keys(self) -> int:
        """Count the effects at the remote server that honours keys: each key counts once."""
        return len({mark.what for mark in self.marks() if mark.what.startswith("key ")})


def story(tenant: TenantRef, run: Execution) -> list[str]:
    """The kinds of a run's events."""
    with tenant_scope(tenant):
        found = ExecutionEvent.objects.filter(execution=run).order_by("sequence")
        return list(found.values_list("kind", flat=True))
