"""A credential that was valid before waits in its tenant's line; all others are strangers."""

import pytest

from orchestrator.web.callers import STRANGERS, Callers, credential_of

KEY = (b"authorization", b"Bearer isl_1")
SESSION = (b"cookie", b"theme=dark; sessionid=abc ;csrftoken=x")


def digest(*headers: tuple[bytes, bytes]) -> bytes:
    return credential_of(headers, b"sessionid")


def test_whoever_is_not_known_is_a_stranger() -> None:
    callers = Callers()
    assert callers.of(digest(KEY)) == STRANGERS
    callers.learn(digest(KEY), "tenant:7")
    assert callers.of(digest(KEY)) == "tenant:7"
    assert callers.of(digest((b"authorization", b"Bearer isl_2"))) == STRANGERS


def test_nobody_is_known_by_showing_nothing() -> None:
    callers = Callers()
    callers.learn(digest(), "tenant:7")
    assert callers.of(digest()) == STRANGERS


def test_what_else_is_in_a_cookie_does_not_matter() -> None:
    assert digest(SESSION) == digest((b"cookie", b"sessionid=abc"))
    assert digest(SESSION) == digest((b"cookie", b"other=1"), (b"cookie", b"sessionid=abc"))
    assert digest(SESSION) != digest((b"cookie", b"sessionid=abd"))
    assert digest((b"cookie", b"csrftoken=abc")) == b""


def test_a_key_goes_before_a_session_as_in_the_application() -> None:
    assert digest(SESSION, KEY) == digest(KEY)


def test_spellings_of_a_key_are_one_credential() -> None:
    assert digest((b"authorization", b"bearer   isl_1 ")) == digest(KEY)


def test_the_credential_itself_is_not_kept() -> None:
    assert b"isl_1" not in digest(KEY)


@pytest.mark.parametrize("used", [0, 1])
def test_the_longest_unused_is_forgotten(used: int) -> None:
    callers = Callers(most=2)
    for credential in (b"0", b"1", b"%d" % used, b"2"):
        callers.learn(credential, "known")
    known = [callers.of(credential) == "known" for credential in (b"0", b"1", b"2")]
    assert known == [used == 0, used == 1, True]
