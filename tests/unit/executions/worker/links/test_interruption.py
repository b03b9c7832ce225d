"""executions.worker.links.interruption: a link that Celery ignores says why with a code."""

import pytest
from celery.exceptions import Ignore

from executions.transitions.claim import Refusal
from executions.worker.links.interruption import InterruptReason, LinkInterrupted


@pytest.mark.parametrize("reason", InterruptReason)
def test_celery_ignores_it_and_its_text_is_the_code(reason: InterruptReason) -> None:
    interrupted = LinkInterrupted(reason)
    assert isinstance(interrupted, Ignore)
    assert (str(interrupted), interrupted.reason) == (reason.value, reason)
    assert reason.value.replace("_", "").isalpha()


@pytest.mark.parametrize("refusal", Refusal)
def test_every_refusal_of_a_claim_is_a_reason(refusal: Refusal) -> None:
    assert InterruptReason(refusal.value).name == refusal.name
