"""How a step ends: a structured result with a code from one table."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal, Self

from isolane.text import MESSAGE_MAX, storable


class Code(StrEnum):
    """Why a step failed."""

    TRANSIENT_ERROR = "TRANSIENT_ERROR"  # may work when tried again
    RATE_LIMIT_ERROR = "RATE_LIMIT_ERROR"  # the far side asks to slow down
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"  # the run's or tenant's budget is spent
    POLICY_VIOLATION = "POLICY_VIOLATION"  # a rule of the platform was broken
    SKILL_NOT_FOUND = "SKILL_NOT_FOUND"  # no such node in this runtime
    UNKNOWN_ERROR = "UNKNOWN_ERROR"  # the node raised what nobody expected, or its runtime died
    TIMEOUT = "TIMEOUT"  # the step was ended at its deadline
    RESOURCE_ERROR = "RESOURCE_ERROR"  # a resource could not be opened
    CANCELLED = "CANCELLED"  # somebody asked for it
    RAM_EXCEEDED = "RAM_EXCEEDED"
    PROCESS_LIMIT = "PROCESS_LIMIT"
    DISK_FULL = "DISK_FULL"
    OUTPUT_TOO_LARGE = "OUTPUT_TOO_LARGE"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"  # cut in the middle; may not run again
    WORKER_LOST = "WORKER_LOST"  # lost too many workers in a row
    CATALOGUE_MISSING = "CATALOGUE_MISSING"  # no worker has the run's catalogue

    @property
    def retryable(self) -> bool:
        """Say whether trying again may help."""
        return self in RETRY_BASE_MS

    @property
    def base_ms(self) -> int:
        """Return the base of the backoff in milliseconds, 0 if never retried."""
        return RETRY_BASE_MS.get(self, 0)


# Codes that are not listed are never retried.
RETRY_BASE_MS: Mapping[Code, int] = MappingProxyType(
    {
        Code.TRANSIENT_ERROR: 1000,
        Code.RATE_LIMIT_ERROR: 5000,
        Code.TIMEOUT: 1000,
        Code.RESOURCE_ERROR: 1000,
    }
)


class StepError(Exception):
    """What a node raises to fail with a code and a message that people may read."""

    def __init__(self, code: Code | str, message: str) -> None:
        super().__init__(code, message)
        self.code = Code(code)
        self.message = str(message)


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """How one attempt of one step ended; on the wire it is the RESULT frame."""

    step: str
    attempt: int
    status: Literal["succeeded", "failed"]
    output: Any = None
    code: Code | None = None
    message: str = ""
    cause: str | None = None  # name of the exception's class, never its text

    def __post_init__(self) -> None:
        if (self.status == "failed") != (self.code is not None):
            raise ValueError("exactly a failed result has a code")

    @classmethod
    def succeeded(cls, *, step: str, attempt: int, output: Any) -> Self:
        """Build the result of an attempt that returned."""
        return cls(step=step, attempt=attempt, status="succeeded", output=output)

    @classmethod
    def failed(
        cls, *, step: str, attempt: int, code: Code, message: str, cause: str | None = None
    ) -> Self:
        """Build the result of an attempt that failed."""
        text = storable(message, MESSAGE_MAX)
        return cls(
            step=step, attempt=attempt, status="failed", code=code, message=text, cause=cause
        )

    @classmethod
    def from_error(cls, error: BaseException, *, step: str, attempt: int, node: str) -> Self:
        """Build a failure; only a StepError speaks for itself, all others are redacted."""
        if isinstance(error, StepError):
            code, message, shown = error.code, error.message, error.__cause__
        else:
            # The text of an unexpected exception may hold anything, secrets included.
            code, shown = Code.UNKNOWN_ERROR, error
            message = f"{type(error).__name__} in node {node}"
        cause = None if shown is None else type(shown).__name__
        return cls.failed(step=step, attempt=attempt, code=code, message=message, cause=cause)
