"""Errors that a caller may see: a stable code, an HTTP status, and a sentence that says what to do."""

from typing import ClassVar


class IsolaneError(Exception):
    """An expected failure; its text is safe to show to the caller."""

    code: ClassVar[str] = "internal_error"
    http_status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False
    title: ClassVar[str] = "Something went wrong on our side"
    retry_after_s: int = 5  # when retryable

    def __init__(self, detail: str, *, field: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.field = field


class InvalidInput(IsolaneError):
    """A value that the caller sent is not valid; the detail names it and a valid one."""

    code = "invalid_input"
    http_status = 400
    title = "The request does not fit"


class TooLarge(IsolaneError):
    """The request is larger than the limit."""

    code = "too_large"
    http_status = 413
    title = "The request is too large"


class TooMuchToCheck(IsolaneError):
    """A check would take too much work; the detail names the value or the rule."""

    code = "too_much_work"
    http_status = 422
    title = "Checking this takes too much work"


class TooManyChecks(IsolaneError):
    """Too many checks are in progress, of the tenant or in all."""

    code = "too_many_checks"
    http_status = 429
    retryable = True
    retry_after_s = 1
    title = "Too much is being checked now"


class NotFound(IsolaneError):
    """The object does not exist, or the caller may not see that it does."""

    code = "not_found"
    http_status = 404
    title = "Not found"


class Conflict(IsolaneError):
    """The request is valid, but the present state forbids it."""

    code = "conflict"
    http_status = 409
    title = "The present state forbids this"


class Forbidden(IsolaneError):
    """The caller is known but lacks the permission."""

    code = "permission_denied"
    http_status = 403
    title = "Not allowed"


class CsrfFailed(Forbidden):
    """A browser's request has no valid CSRF token."""

    code = "csrf_failed"


class Unauthenticated(IsolaneError):
    """The credential is missing or not valid."""

    code = "not_authenticated"
    http_status = 401
    title = "Not authenticated"


class Unavailable(IsolaneError):
    """A server does not answer; the same request may succeed later."""

    code = "unavailable"
    http_status = 503
    retryable = True
    title = "Temporarily unavailable"


class TooManyAttempts(IsolaneError):
    """Too many credentials were wrong, or too many are being checked; the text is the same for every account."""

    code = "too_many_attempts"
    http_status = 429
    retryable = True
    title = "Too many attempts"

    def __init__(self, seconds: int) -> None:
        super().__init__(f"Too many attempts to sign in; try again in {seconds} s.")
        self.retry_after_s = seconds
