"""The open question of a suspended run, and what people and the passing of time do to it.

Timing: in the test's own thread. Model: sync; the core's own services. Guarantee: what has ended a question is tried
again, and must change nothing. Failure: an answer that should be refused and is not fails the test.
"""

from typing import Any
from uuid import UUID

import pytest
from django.db.models.functions import Now

from executions.models import Approval, ApprovalState, Execution, Step
from executions.placement.models import Due, DueKind, Ticket
from executions.semantics.approval_reply import ApprovalReply
from executions.services.approvals import AlreadyAnswered, answer
from executions.services.waking import wake_due
from foundation.errors import NotFound
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.model.script import Answer, reply_of

REPLIES = (Answer.APPROVE, Answer.REJECT)


class Question:
    """Of one run, which has exactly one that is open."""

    def __init__(self, tenant: TenantRef, execution_id: UUID) -> None:
        self._tenant = tenant
        self._execution_id = execution_id
        with tenant_scope(tenant):
            row = Approval.objects.get(execution_id=execution_id, state=ApprovalState.OPEN)
        self._number = row.number
        self.step = row.step

    def refuse(self, stranger: TenantRef) -> None:
        """Answer as another tenant, which finds no such run and changes nothing."""
        before = self._rows()
        with pytest.raises(NotFound):
            self._reply(stranger, Answer.APPROVE)
        assert self._rows() == before

    def end(self, said: Answer) -> None:
        """As the script says; whatever comes after that changes nothing."""
        if said is Answer.NOBODY:
            self._expire()
        else:
            self._reply(self._tenant, said)
        before = self._rows()
        self._end_again(said)
        assert self._rows() == before

    def _expire(self) -> None:
        with tenant_scope(self._tenant):
            asked = Approval.objects.filter(execution_id=self._execution_id, number=self._number)
            assert asked.update(expires_at=Now()) == 1
        with platform_scope():
            due = Due.objects.filter(ref=self._execution_id, kind=DueKind.APPROVAL)
            assert due.update(at=Now()) == 1
        with pytest.raises(AlreadyAnswered):  # its time is over, though nobody has noticed yet
            self._reply(self._tenant, Answer.APPROVE)
        assert wake_due() == 1

    def _end_again(self, said: Answer) -> None:
        assert wake_due() == 0
        for reply in REPLIES:
            if reply is said:
                self._reply(self._tenant, reply)
                continue
            with pytest.raises(AlreadyAnswered):
                self._reply(self._tenant, reply)

    def _reply(self, who: TenantRef, said: Answer) -> None:
        reply = ApprovalReply(**reply_of(said))
        ended = answer(who, f"exec_{self._execution_id}", self._number, reply)
        assert (ended.state, ended.answered_by, ended.comment) == (
            said.value,
            reply.by,
            reply.comment,
        )

    def _rows(self) -> list[Any]:
        """All that an answer may change."""
        run = {"execution_id": self._execution_id}
        with tenant_scope(self._tenant):
            rows: list[Any] = [
                *Execution.objects.filter(pk=self._execution_id).values(),
                *Step.objects.filter(**run).order_by("position").values(),
                *Approval.objects.filter(**run).order_by("number").values(),
            ]
        with platform_scope():
            rows += Ticket.objects.filter(**run).values()
            rows += Due.objects.filter(ref=self._execution_id).values()
        return rows
