"""The forms in which an injected secret may turn up."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executions.semantics.masking import MASK, Masker
from executions.semantics.secrets import MIN_SECRET, forms

SECRET = 'p@ss/w"rd+ü x'


def found(text: str, secret: str = SECRET) -> bool:
    masker = Masker()
    masker.learn_secrets([secret])
    assert masker.holds_secret(text) == (masker.mask(text) != text)
    return masker.holds_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: {SECRET}!",
        json.dumps({"password": SECRET}),
        json.dumps({"password": SECRET}, ensure_ascii=False),
        repr({"password": SECRET}),
        f"postgresql://u:{quote(SECRET, safe='')}@h/d",
        f"/login?p={quote_plus(SECRET)}",
        f"/x/{quote(SECRET)}",
        quote(SECRET, safe="").lower().replace("p%40", "p%40"),
    ],
)
def test_a_secret_is_found_as_libraries_write_it(text: str) -> None:
    assert found(text)


@given(before=st.binary(max_size=9), after=st.binary(max_size=9), urlsafe=st.booleans())
def test_a_secret_is_found_in_base64_whatever_stands_around_it(
    before: bytes, after: bytes, urlsafe: bool
) -> None:
    encode = base64.urlsafe_b64encode if urlsafe else base64.b64encode
    assert found(encode(before + SECRET.encode() + after).decode())


@given(
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), min_size=MIN_SECRET)
)
def test_every_secret_of_the_least_length_is_found_as_it_is(secret: str) -> None:
    assert found(f"<{secret}>", secret)


def test_other_texts_are_left_alone() -> None:
    masker = Masker()
    masker.learn_secrets([SECRET])
    assert masker.mask("nothing to see") == "nothing to see"
    assert not masker.holds_secret("nothing to see")


def test_a_secret_that_is_too_short_is_not_looked_for() -> None:
    assert forms("x" * (MIN_SECRET - 1)) == frozenset()
    assert forms("x" * MIN_SECRET)


def test_a_key_of_several_lines_is_masked_line_by_line() -> None:
    masker = Masker()
    masker.learn_secrets(["-----BEGIN-----\nAAAABBBB\nCC"])
    assert masker.mask("it said AAAABBBB") == f"it said {MASK}"


def test_a_masker_without_secrets_says_so() -> None:
    masker = Masker()
    assert not masker.has_secrets
    masker.learn_secrets([])
    assert not masker.has_secrets
    masker.learn_secrets([SECRET])
    assert masker.has_secrets
