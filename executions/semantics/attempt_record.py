"""What an attempt leaves behind, as it is stored. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Self

from executions.semantics.masking import Masker


@dataclass(frozen=True, kw_only=True, slots=True)
class LogLine:
    """One line that a step has said."""

    at: datetime
    level: str
    message: str
    continued: bool = False  # it follows a piece of the same line
    cut: bool = False  # it is too long for one line

    def masked_by(self, masker: Masker) -> Self:
        """The line as it may be shown."""
        message = masker.mask(self.message, continued=self.continued, cut=self.cut)
        return replace(self, message=message)


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptRecord:
    """What an attempt leaves behind, as it may be stored: masked, and what is masked sealed beside it."""

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
    unbilled: bool = False  # it was cut, and nobody knows what it has cost
