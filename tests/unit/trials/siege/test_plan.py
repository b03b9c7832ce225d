"""Requests of a siege and their targets."""

import json
from collections import Counter
from ipaddress import ip_address

import pytest

from executions.blueprints.schema.document import check
from trials.siege import half_open, logins, plan, schemas
from trials.siege.http import Answer, parse_head


def test_idle_and_control_are_long_enough_and_shorter_than_a_long_attack() -> None:
    assert plan.phases(60) == plan.Phases(idle=20, attack=60, control=20)
    short = plan.phases(10)
    assert (short.idle, short.attack) == (plan.SHORTEST_SECONDS, 10)


def test_only_this_machine_is_attacked_and_from_this_machine() -> None:
    assert all(ip_address(address).is_loopback for address in (plan.ADDRESS, *plan.SOURCES))
    assert len(set(plan.SOURCES)) == len(plan.SOURCES)
    # An attack from the victim's own address must not harm it either.
    assert plan.ADDRESS in plan.SOURCES


def test_half_open_connections_are_of_all_kinds_and_never_whole() -> None:
    found = Counter(plan.half_open())
    assert found.total() == plan.HALF_OPEN
    assert len(set(found.values())) == 1
    assert set(found) == set(half_open.OPENINGS)
    for kind, opening in half_open.OPENINGS.items():
        assert (b"\r\n\r\n" in opening) == kind.startswith("body")


def test_bodies_go_everywhere_with_a_length_and_in_chunks() -> None:
    found = plan.bodies()
    assert len(found) == plan.BODIES
    assert {(body.path, body.chunked) for body in found} == {
        (path, chunked) for path in plan.BODY_PATHS for chunked in (True, False)
    }


def test_logins_are_mixed_in_their_shares() -> None:
    turns = plan.logins()
    assert Counter(turns) == plan.LOGIN_SHARES
    assert set(turns[:5]) == set(plan.LOGIN_SHARES)
    assert [plan.due(at) for at in (0, 0.5, 60)] == [0, 250, 30_000]


def test_a_login_is_sent_as_its_page_asks() -> None:
    page = Answer(
        status=200,
        headers=(("set-cookie", "csrftoken=c1; Path=/"), ("set-cookie", "other=2; HttpOnly")),
        body=b'<input type="hidden" name="csrfmiddlewaretoken" value="t1">',
    )
    form = logins.read_form(page)
    guessing = logins.Guessing(web=1, flower=2, forms={"login": form})
    sent = guessing.call(7, "login")
    assert (sent.method, sent.path) == ("POST", "/login/")
    assert sent.headers["Cookie"] == "csrftoken=c1; other=2"
    assert b"csrfmiddlewaretoken=t1&username=admin&password=wrong7" in sent.body
    assert b"username=user8" in guessing.call(8, "login").body
    with pytest.raises(ValueError, match="no login form"):
        logins.read_form(Answer(status=503, headers=(), body=b"away"))


def test_every_try_guesses_something_else() -> None:
    guessing = logins.Guessing(web=1, flower=2)
    for kind in ("api key", "flower"):
        sent = {guessing.call(number, kind).headers["Authorization"] for number in range(10)}
        assert len(sent) == 10


def test_schemas_are_blueprints_but_for_their_size() -> None:
    found = schemas.expensive()
    assert len({schema.name for schema in found}) == plan.SCHEMAS
    for schema in found:
        document = json.loads(json.loads(schema.source)["source"])
        assert document["name"] == json.loads(schema.submission)["blueprint"] == schema.name
        assert "never" in json.dumps(document["inputs"])  # no run starts
    smallest = min(found, key=lambda schema: len(schema.source))
    for source in (smallest.source, schemas.small()):
        check(json.loads(json.loads(source)["source"]))


def test_an_answers_head_is_read() -> None:
    found = parse_head(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nX: a: b\r\n\r\n")
    assert found.status == 429
    assert (found.header("retry-after"), found.header("x"), found.header("y")) == ("3", "a: b", "")
