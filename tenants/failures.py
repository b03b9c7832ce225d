"""Failures of provisioning, kept on the tenant's row for operators, and the time of the next try."""

import logging
from datetime import timedelta
from typing import Any

from django.db import Error as DatabaseError
from django.db.models import Q
from django.db.models.functions import Now

from foundation.errors import IsolaneError
from tenants.models import Tenant

LONGEST_DELAY_SECONDS = 300
ERROR_LENGTH = 500
NO_FAILURE: dict[str, Any] = {
    "provisioning_error": "",
    "provisioning_failures": 0,
    "provisioning_after": None,
}
logger = logging.getLogger(__name__)


def due() -> Q:
    """Select tenants that have not failed, or whose next try is due."""
    return Q(provisioning_after=None) | Q(provisioning_after__lte=Now())


def delay_seconds(failures: int) -> int:
    """Return the delay after so many failures: 2, 4, 8 … seconds. Pure."""
    return min(1 << min(failures, 20), LONGEST_DELAY_SECONDS)


def described(error: Exception) -> str:
    """Return a stable code and a sentence, without data of rows and without a trace. Pure."""
    if isinstance(error, IsolaneError):
        return f"{error.code}: {error.detail}"[:ERROR_LENGTH]
    if isinstance(error, DatabaseError):
        # The lines below the first may quote rows.
        line = str(error).strip().partition("\n")[0] or type(error).__name__
        return f"database_error: {line}"[:ERROR_LENGTH]
    return f"internal_error: {type(error).__name__}; see the log of the process that tried"


def note_failure(
    tenant_id: int, error: Exception, *, status: str, doing: str, using: str = "default"
) -> str:
    """Store the failure on the row unless its status has changed, and log one line; return the stored text."""
    description = described(error)
    rows = Tenant.objects.using(using).filter(pk=tenant_id, status=status)
    row = rows.first()
    failures = row.provisioning_failures + 1 if row else 1
    rows.update(
        provisioning_error=description,
        provisioning_failures=failures,
        provisioning_after=Now() + timedelta(seconds=delay_seconds(failures)),
    )
    expected = isinstance(error, (IsolaneError, DatabaseError))
    logger.error(
        "%s tenant %s failed, tried again in %d s: %s",
        doing,
        row.schema_name if row else tenant_id,
        delay_seconds(failures),
        description,
        exc_info=None if expected or failures > 1 else error,
        extra={"event": "PROVISIONING_FAILED"},
    )
    return description
