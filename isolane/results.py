"""The result of a step: structured, with a code from one table."""

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal, Self

from isolane.names import VARIABLE
from isolane.text import MESSAGE_MAX, TRACE_MAX, storable
from isolane.traces import trace_of

PAUSE_MAX_S = 366 * 86_400.0
_CAUSE_MAX = 200  # characters of an exception's class name


class Code(StrEnum):
    """The reason why a step failed."""

    TRANSIENT_ERROR = "TRANSIENT_ERROR"  # may work when tried again
    RATE_LIMIT_ERROR = "RATE_LIMIT_ERROR"  # the remote server asks to slow down
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"  # the run's or tenant's budget is spent
    POLICY_VIOLATION = "POLICY_VIOLATION"  # a rule of the platform was broken
    SKILL_NOT_FOUND = "SKILL_NOT_FOUND"  # no such node in this runtime
    UNKNOWN_ERROR = "UNKNOWN_ERROR"  # the node raised an unexpected exception, or its runtime died
    TIMEOUT = "TIMEOUT"  # the step was ended at its deadline
    RESOURCE_ERROR = "RESOURCE_ERROR"  # a resource could not be opened
    CANCELLED = "CANCELLED"  # a cancellation was requested
    RAM_EXCEEDED = "RAM_EXCEEDED"
    PROCESS_LIMIT = "PROCESS_LIMIT"
    DISK_FULL = "DISK_FULL"
    OUTPUT_TOO_LARGE = "OUTPUT_TOO_LARGE"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"  # interrupted; may not run again
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


def _errno_of(error: BaseException) -> str:
    """Return the name of a system call's error, in brackets; empty for what is none."""
    name = errno.errorcode.get(error.errno or 0) if isinstance(error, OSError) else None
    return f" ({name})" if name else ""


class StepError(Exception):
    """The error that a node raises to fail with a code and a message that people may read."""

    def __init__(self, code: Code | str, message: str) -> None:
        super().__init__(code, message)
        self.code = Code(code)
        self.message = str(message)


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """The result of one attempt of one step; on the wire it is the RESULT frame."""

    step: str
    attempt: int
    status: Literal["succeeded", "failed"]
    output: Any = None
    code: Code | None = None
    message: str = ""
    cause: str | None = None  # name of the exception's class, never its text
    variables: dict[str, Any] = field(default_factory=dict)  # that the step set
    pause_s: float = 0.0  # the run waits that long after this step
    question: str = ""  # to a person, who has `pause_s` to answer; the answer is the output
    trace: str = ""  # of an unexpected exception; for operators only, it may contain anything
    # Handles that earlier steps had opened and this step used: the names by which it asked, by handle id.
    reused: dict[str, str] = field(default_factory=dict, compare=False)
    nonce: str = field(default="", compare=False)  # of the RUN that it belongs to

    def __post_init__(self) -> None:
        if (self.status == "failed") != (self.code is not None):
            raise ValueError("a result has a code if, and only if, it failed")
        if len(self.message) > MESSAGE_MAX or len(self.cause or "") > _CAUSE_MAX:
            raise ValueError("its message or cause is too long")
        if self.status == "failed":
            self._check_failure()
        else:
            self._check_success()

    @classmethod
    def succeeded(
        cls,
        *,
        step: str,
        attempt: int,
        output: Any,
        variables: dict[str, Any] | None = None,
        pause_s: float = 0.0,
        question: str = "",
    ) -> Self:
        """Build the result of an attempt that returned."""
        return cls(
            step=step,
            attempt=attempt,
            status="succeeded",
            output=output,
            variables=variables or {},
            pause_s=pause_s,
            question=question,
        )

    @classmethod
    def failed(
        cls,
        *,
        step: str,
        attempt: int,
        code: Code,
        message: str,
        cause: str | None = None,
        trace: str = "",
    ) -> Self:
        """Build the result of an attempt that failed."""
        return cls(
            step=step,
            attempt=attempt,
            status="failed",
            code=code,
            message=storable(message, MESSAGE_MAX),
            cause=cause,
            trace=trace,
        )

    @classmethod
    def from_error(cls, error: BaseException, *, step: str, attempt: int, node: str) -> Self:
        """Build a failure; only the text of a StepError is shown, all others are redacted."""
        if isinstance(error, StepError):
            code, message, shown, trace = error.code, error.message, error.__cause__, ""
        else:
            # The text of an unexpected exception may contain anything, secrets included.
            code, shown, trace = Code.UNKNOWN_ERROR, error, trace_of(error)
            message = f"{type(error).__name__}{_errno_of(error)} in node {node}"
        cause = None if shown is None else storable(type(shown).__name__, _CAUSE_MAX)
        return cls.failed(
            step=step, attempt=attempt, code=code, message=message, cause=cause, trace=trace
        )

    def _check_success(self) -> None:
        if not 0 <= self.pause_s <= PAUSE_MAX_S:
            raise ValueError(f"pause_s {self.pause_s!r} is not between 0 and {PAUSE_MAX_S:.0f}")
        if self.trace:
            raise ValueError("only a failed result has a trace")
        if self.question:
            self._check_question()
        for name in self.variables:
            if not VARIABLE.fullmatch(name):
                raise ValueError(f"variable {name[:64]!r} does not match {VARIABLE.pattern}")

    def _check_question(self) -> None:
        if len(self.question) > MESSAGE_MAX:
            raise ValueError(
                f"a question of {len(self.question)} characters is over the limit of {MESSAGE_MAX}"
            )
        if self.output is not None or not self.pause_s:
            raise ValueError("a question has a time to be answered in, and no output yet")

    def _check_failure(self) -> None:
        if self.variables or self.pause_s or self.question:
            raise ValueError("a failed result neither sets variables, nor pauses, nor asks")
        if len(self.trace) > TRACE_MAX:
            raise ValueError(
                f"a trace of {len(self.trace)} characters is over the limit of {TRACE_MAX}"
            )
