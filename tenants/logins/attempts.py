"""One try to sign in, with a password or with an API key.

Timing: request-time.
Model: sync.
Guarantee: at-most-once; a try counts as failed before it is made, so many at once cannot evade the limit.
Failure: bubble; a try that could not be finished is not counted.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from django.http import HttpRequest

from foundation.backoff import CountedSubject, seconds
from foundation.errors import TooManyAttempts
from tenants.logins.addresses import address_of, is_shared_by_all
from tenants.logins.counts import counts
from tenants.logins.failures import record_failure
from tenants.logins.limits import key_subject, password_subjects
from tenants.logins.waiting import WAITING

Found = TypeVar("Found")


def with_password(
    request: HttpRequest, account: str, check: Callable[[], Found | None]
) -> Found | None:
    """Check a password unless the account at this address, or the address, has to wait."""
    address = address_of(request)
    pair, shared = password_subjects(account, address, is_proxy=is_shared_by_all())
    found, failures = _counted([pair, shared], check)
    if found is None:
        record_failure(what="password", account=account, address=address, failures=failures)
    else:
        counts().forget(pair.name)
        counts().give_back(shared.name)
    return found


def with_key(request: HttpRequest, check: Callable[[], Found | None]) -> Found | None:
    """Check an API key unless its address has to wait."""
    address = address_of(request)
    subject = key_subject(address, is_proxy=is_shared_by_all())
    found, failures = _counted([subject], check)
    if found is None:
        record_failure(what="API key", account="", address=address, failures=failures)
    else:
        counts().give_back(subject.name)
    return found


def _counted(
    subjects: Sequence[CountedSubject], check: Callable[[], Found | None]
) -> tuple[Found | None, int]:
    """Return the result of the check, and the failures of the first subject including this one."""
    counted = counts().count(subjects)
    if counted.wait > 0:
        for subject, wait in zip(subjects, counted.waits, strict=True):
            WAITING.note(subject.name, wait)
        raise TooManyAttempts(seconds(counted.wait))
    try:
        return check(), counted.failures[0]
    except BaseException:
        for subject in subjects:
            counts().give_back(subject.name)
        raise
