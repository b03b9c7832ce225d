"""The record of a finished attempt, as it is stored. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Self

from executions.semantics.masking import Masker


@dataclass(frozen=True, kw_only=True, slots=True)
class LogLine:
    """One log line of a step."""

    at: datetime
    level: str
    message: str
    continued: bool = False  # the rest of a truncated line
    truncated: bool = False  # the line goes on in the next one

    def masked_by(self, masker: Masker) -> Self:
        """Return the line as it may be shown."""
        message = masker.mask(self.message, continued=self.continued, truncated=self.truncated)
        return replace(self, message=message)


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptRecord:
    """Everything stored about an attempt: masked, with the masked values sealed beside."""

    path: str
    attempt: int
    version: int
    inputs: str | None = None  # JSON, as all values here
    output: str | None = None
    sealed_output: bytes | None = None
    code: str = ""
    message: str = ""
    cause: str = ""
    question: str = ""  # to a person
    run_code: str = ""  # why the run ends, if it does not succeed
    run_message: str = ""
    variables: str | None = None  # all of the run's, if the step set any
    sealed_variables: bytes | None = None
    outputs: str | None = None  # the run's, at its end
    lines: Sequence[LogLine] = ()
    costs: Mapping[str, Decimal] = field(default_factory=dict)  # of this attempt
    run_costs: Mapping[str, Decimal] = field(default_factory=dict)  # of the run, with these
    unbilled: bool = False  # it was interrupted, so its costs are unknown
