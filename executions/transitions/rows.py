"""Rows that several transitions give back."""

from typing import NamedTuple
from uuid import UUID


class RunRow(NamedTuple):
    """The run that was written."""

    id: UUID


class StateRow(NamedTuple):
    """The state that a run was brought into."""

    state: str
