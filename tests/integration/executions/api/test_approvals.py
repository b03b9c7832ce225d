"""Approvals over HTTP: list, read, answer; each tenant for itself."""

import uuid
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from django.db.models.functions import Now
from django.test import Client

from executions.models import Approval, Execution, Step
from executions.selectors.executions import parse_id
from executions.services.approvals import MAX_COMMENT
from executions.worker.boot import WorkerBoot
from tenants.roles import Role
from tenants.scope import TenantRef, tenant_scope
from tests.factories import everything_of, run_of, step_of, ticket_of
from tests.integration.executions.api.questions import STEPS, ask, asking_boot
from tests.integration.tenants.web import member, problem, program, visitor

API = "/api/v1"
YES, NO = {"approved": True}, {"approved": False}


@pytest.fixture
def boot(database: None, broker: "redis.Redis") -> WorkerBoot:
    """A worker whose nodes ask."""
    return asking_boot()


@pytest.fixture
def asked(boot: WorkerBoot, acme: TenantRef, globex: TenantRef) -> str:
    """A run of acme that asks; one of globex does, too."""
    ask(globex, boot)
    return ask(acme, boot)


def path(run: str, number: int = 1) -> str:
    return f"{API}/executions/{run}/approvals/{number}"


def answer(client: Client, run: str, body: Any = YES, *, number: int = 1) -> Any:
    return client.post(f"{path(run, number)}/answer", body, content_type="application/json")


def listed(client: Client, query: str = "") -> list[str]:
    found = client.get(f"{API}/approvals{query}")
    assert found.status_code == 200, found.content
    return [row["execution"] for row in found.json()["results"]]


def state_of(tenant: TenantRef, run: str) -> str:
    with tenant_scope(tenant):
        return Approval.objects.get(execution_id=parse_id(run), number=1).state


# --- looking
def test_a_question_is_read(asked: str, acme: TenantRef) -> None:
    for client in (program(acme, role=Role.VIEWER), member(acme, Role.VIEWER)):
        body = client.get(path(asked)).json()
        assert body | {"asked_at": "", "expires_at": ""} == {
            "execution": asked, "number": 1, "blueprint": "payments", "step": "approve", "prompt": "Pay?",
            "state": "open", "asked_at": "", "expires_at": "", "answered_at": None, "answered_by": "",
            "comment": "",
        }  # fmt: skip
        assert body["asked_at"] < body["expires_at"]


def test_the_run_shows_its_question_while_it_is_open(asked: str, acme: TenantRef) -> None:
    client = program(acme)
    body = client.get(f"{API}/executions/{asked}").json()
    assert (body["state"], body["question"]) == ("suspended", "Pay?")
    assert body["wake_at"] == client.get(path(asked)).json()["expires_at"]
    answer(client, asked)
    assert client.get(f"{API}/executions/{asked}").json()["question"] == ""


def test_questions_are_listed_the_newest_first_and_narrowed(
    asked: str, boot: WorkerBoot, acme: TenantRef
) -> None:
    client = program(acme, role=Role.VIEWER)
    other = ask(acme, boot, blueprint="payroll")
    answer(program(acme), asked)
    assert listed(client) == [other, asked]
    assert listed(client, "?state=open") == listed(client, "?blueprint=payroll") == [other]
    assert listed(client, "?state=approved") == listed(client, f"?execution={asked}") == [asked]
    assert listed(client, f"?execution={asked}&state=open") == []
    assert listed(client, f"?execution=exec_{uuid.uuid4()}") == []


def test_the_list_comes_in_pages(asked: str, boot: WorkerBoot, acme: TenantRef) -> None:
    runs = [asked, *(ask(acme, boot) for _ in range(2))]
    client, seen, at = program(acme), [], "?page_size=2"
    while at:
        body = client.get(f"{API}/approvals{at}").json()
        seen += [row["execution"] for row in body["results"]]
        at = f"?{urlsplit(body['next']).query}" if body["next"] else ""
    assert seen == runs[::-1]


@pytest.mark.parametrize(
    "query",
    ["state=waiting", "execution=7", "page_size=0", "page_size=201", "colour=red", "blueprint=%00"],
)
def test_a_wrong_query_is_refused_by_its_name(acme: TenantRef, asked: str, query: str) -> None:
    body = problem(program(acme).get(f"{API}/approvals?{query}"), 400, "invalid_input")
    assert body["errors"][0]["field"] == query.split("=", maxsplit=1)[0]


# --- answering
def test_approved_the_run_goes_on_when_a_slot_is_free(asked: str, acme: TenantRef) -> None:
    answered = answer(program(acme), asked, {"approved": True, "comment": " as agreed "})
    assert answered.status_code == 200
    body = answered.json()
    assert (body["state"], body["comment"]) == ("approved", "as agreed")
    assert body["answered_by"].startswith("key:isl_")
    assert body["asked_at"] <= body["answered_at"] < body["expires_at"]
    step = step_of(acme, parse_id(asked), "approve")
    assert (step.state, step.attempt) == ("succeeded", 1)
    assert step.output == {"approved": True, "by": body["answered_by"], "comment": "as agreed"}
    run = run_of(acme, parse_id(asked))
    assert (run.state, run.next_step, run.question) == ("queued", "pay", "")
    ticket = ticket_of(parse_id(asked))
    assert ticket is not None
    assert ticket.state != "parked"


def test_rejected_the_step_has_succeeded_and_the_run_knows(asked: str, acme: TenantRef) -> None:
    body = answer(member(acme, Role.OPERATOR), asked, NO).json()
    assert body["state"] == "rejected"
    assert body["answered_by"].startswith("user:someone")
    step = step_of(acme, parse_id(asked), "approve")
    assert (step.state, step.code) == ("succeeded", "")
    assert step.output == {"approved": False, "by": body["answered_by"], "comment": ""}


def test_an_answer_ends_a_run_of_which_nothing_is_left(
    boot: WorkerBoot, acme: TenantRef, globex: TenantRef
) -> None:
    run = ask(acme, boot, steps=STEPS[:1], outputs={"ok": "${steps.approve.approved}"})
    other = ask(globex, boot, steps=STEPS[:1])
    assert answer(program(acme), run, NO).status_code == 200
    body = program(acme).get(f"{API}/executions/{run}").json()
    assert (body["state"], body["outputs"]) == ("succeeded", {"ok": False})
    assert ticket_of(parse_id(run)) is None
    assert state_of(globex, other) == "open"


def test_the_same_answer_again_changes_nothing(asked: str, acme: TenantRef) -> None:
    client = program(acme)
    first = answer(client, asked, {"approved": True, "comment": "first"}).json()
    with tenant_scope(acme):
        before = Execution.objects.get(pk=parse_id(asked)).last_event
    again = answer(client, asked, {"approved": True, "comment": "again"})
    assert (again.status_code, again.json()) == (200, first)
    with tenant_scope(acme):
        assert Execution.objects.get(pk=parse_id(asked)).last_event == before


def test_another_answer_is_refused_and_names_who_was_first(asked: str, acme: TenantRef) -> None:
    first = program(acme)
    by = answer(first, asked).json()["answered_by"]
    for client, body in ((first, NO), (program(acme), YES), (program(acme), NO)):
        refused = problem(answer(client, asked, body), 409, "already_answered")
        assert refused["detail"] == f"It was approved by {by}."
        assert refused["field"] == "number"
    assert state_of(acme, asked) == "approved"


def test_what_has_expired_is_not_answered(asked: str, acme: TenantRef) -> None:
    with tenant_scope(acme):
        Approval.objects.update(expires_at=Now() - timedelta(seconds=1))
    refused = problem(answer(program(acme), asked), 409, "already_answered")
    assert refused["detail"] == "Its time to be answered is over."
    assert state_of(acme, asked) == "open"  # until the tick comes by


def test_what_was_withdrawn_is_not_answered(asked: str, acme: TenantRef) -> None:
    client = program(acme)
    assert client.post(f"{API}/executions/{asked}/cancel").status_code == 202
    assert problem(answer(client, asked), 409, "already_answered")["detail"] == "Its run has ended."
    assert client.get(path(asked)).json()["state"] == "withdrawn"


@pytest.mark.parametrize("number", [0, 2, 2**31, 2**63, 10**30])
def test_a_number_that_is_not_there_is_not_found(asked: str, acme: TenantRef, number: int) -> None:
    client = program(acme)
    for answered in (client.get(path(asked, number)), answer(client, asked, number=number)):
        body = problem(answered, 404, "not_found")
        assert body["detail"] == f"{asked} has no approval {number}."
        assert body["field"] == "number"
    assert state_of(acme, asked) == "open"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "approved"),
        ({"approved": None}, "approved"),
        ({"approved": "perhaps"}, "approved"),
        ({"approved": "yes"}, "approved"),
        ({"approved": "true"}, "approved"),
        ({"approved": 1}, "approved"),
        ({"approved": [True]}, "approved"),
        ({"approved": True, "coment": "x"}, "coment"),
        ({"approved": True, "comment": None}, "comment"),
        ({"approved": True, "comment": 7}, "comment"),
        ({"approved": True, "comment": {"text": "x"}}, "comment"),
        ({"approved": True, "comment": "a\0b"}, "comment"),
        ({"approved": True, "comment": "x" * (MAX_COMMENT + 1)}, "comment"),
        ([], "body"),
        ('"yes"', "body"),
    ],
)
def test_what_is_no_answer_is_refused_and_the_question_stays_open(
    asked: str, acme: TenantRef, body: Any, field: str
) -> None:
    refused = problem(answer(program(acme), asked, body), 400, "invalid_input")
    assert refused["errors"][0]["field"] == field
    assert state_of(acme, asked) == "open"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", "parse_error"),
        ("\0", "parse_error"),
        ('{"approved": true, "comment": "\\ud800"}', "invalid_input"),
    ],
)
def test_what_cannot_be_read_or_stored_is_refused(
    asked: str, acme: TenantRef, body: str, code: str
) -> None:
    problem(answer(program(acme), asked, body), 400, code)
    assert state_of(acme, asked) == "open"


def test_the_longest_comment_is_kept(asked: str, acme: TenantRef) -> None:
    comment = "ü" * MAX_COMMENT
    assert answer(program(acme), asked, {**NO, "comment": comment}).json()["comment"] == comment


def test_what_is_sensitive_is_masked_in_prompt_and_comment(
    boot: WorkerBoot, acme: TenantRef, globex: TenantRef
) -> None:
    fields: dict[str, Any] = {
        "inputs": {"properties": {"card": {"type": "string", "sensitive": True}}},
        "steps": [{**STEPS[0], "with": {"prompt": "Charge ${inputs.card}?"}}, STEPS[1]],
    }
    run = ask(acme, boot, given={"card": "4111-1111"}, **fields)
    open_text = ask(globex, boot, given={"card": "5222-2222"}, **fields)
    client = program(acme)
    answer(client, run, {"approved": True, "comment": "4111-1111 is theirs"})
    body = client.get(path(run)).json()
    assert (body["prompt"], body["comment"]) == ("Charge ***?", "*** is theirs")
    shown = client.get(f"{API}/executions/{run}").content + client.get(f"{API}/approvals").content
    assert b"4111" not in shown
    assert program(globex).get(path(open_text)).json()["prompt"] == "Charge ***?"


# --- who may
def test_a_viewer_reads_and_does_not_answer(asked: str, acme: TenantRef) -> None:
    for client in (program(acme, role=Role.VIEWER), member(acme, Role.VIEWER)):
        assert client.get(path(asked)).status_code == 200
        refused = problem(answer(client, asked), 403, "permission_denied")
        assert "Role viewer lacks execution:answer" in refused["detail"]
    assert state_of(acme, asked) == "open"


def test_nobody_in_particular_is_asked_to_sign_in(asked: str, acme: TenantRef) -> None:
    for answered in (visitor().get(f"{API}/approvals"), answer(visitor(), asked)):
        problem(answered, 401, "not_authenticated")
    assert state_of(acme, asked) == "open"


@pytest.mark.parametrize("limited", [program, member], ids=["key", "member"])
def test_a_question_out_of_reach_looks_like_one_that_does_not_exist(
    asked: str, acme: TenantRef, limited: Any
) -> None:
    client = (
        program(acme, blueprints=["payroll"])
        if limited is program
        else member(acme, Role.OPERATOR, blueprints=["payroll"])
    )
    assert listed(client) == listed(client, f"?execution={asked}") == []
    _assert_same_as_nothing(client, asked)
    assert state_of(acme, asked) == "open"
    reaching = program(acme, blueprints=["payments"])
    assert listed(reaching) == [asked]
    assert answer(reaching, asked).status_code == 200


def test_another_tenants_question_looks_like_one_that_does_not_exist(
    asked: str, acme: TenantRef, globex: TenantRef
) -> None:
    before = everything_of(acme)
    for client in (program(globex, role=Role.ADMIN), member(globex, Role.ADMIN)):
        assert asked not in listed(client)
        assert listed(client, f"?execution={asked}") == []
        _assert_same_as_nothing(client, asked)
    assert everything_of(acme) == before
    assert state_of(acme, asked) == "open"


def test_answers_of_one_tenant_reach_no_other(
    asked: str, acme: TenantRef, globex: TenantRef
) -> None:
    before = everything_of(globex)
    answer(program(acme), asked)
    assert everything_of(globex) == before
    with tenant_scope(globex):
        assert [row.state for row in Approval.objects.all()] == ["open"]
        assert not Step.objects.filter(state="succeeded").exists()


def _assert_same_as_nothing(client: Client, run: str) -> None:
    bodies = set()
    for found in (run, f"exec_{uuid.uuid4()}"):
        for answered in (client.get(path(found)), answer(client, found), answer(client, found, NO)):
            bodies.add(str(problem(answered, 404, "not_found")).replace(found, "…"))
    assert len(bodies) == 1
    problem(answer(client, "exec_7"), 400, "invalid_input")
