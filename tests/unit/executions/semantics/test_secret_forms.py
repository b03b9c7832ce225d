"""The forms in which an injected secret may turn up."""

import base64
import json
import re
from urllib.parse import quote, quote_plus

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executions.semantics.masking import MASK, Masker
from executions.semantics.secret_forms import MIN_SECRET, forms

PEM = "-----BEGIN RSA PRIVATE KEY-----\nAAAABBBB\n-----END RSA PRIVATE KEY-----\n"
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
        json.dumps(json.dumps({"password": SECRET})),
        json.dumps(json.dumps({"password": SECRET}, ensure_ascii=False), ensure_ascii=False),
    ],
)
def test_a_secret_is_found_as_libraries_write_it(text: str) -> None:
    assert found(text)


URL_SECRET = "a!b*c'd(e)f~g/h:i@j&k=l+m,n;o$p [q]^r|s\\t"


@pytest.mark.parametrize(
    "text",
    [
        quote(URL_SECRET, safe="!*'()~"),  # encodeURIComponent
        quote(URL_SECRET, safe="/!$&'()*+,;=:@~"),  # a path by RFC 3986
        str(httpx.URL("https://h").copy_with(path=f"/{URL_SECRET}")),
        str(httpx.URL("https://h", params={"p": URL_SECRET})),
        str(httpx.QueryParams({"p": URL_SECRET})),
    ],
)
def test_a_secret_is_found_in_urls_of_all_makes(text: str) -> None:
    assert URL_SECRET not in text
    assert found(text, URL_SECRET)
    assert found(re.sub("%[0-9A-F]{2}", lambda escape: escape[0].lower(), text), URL_SECRET)


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
    masker.learn_secrets([PEM])
    assert masker.mask("it said AAAABBBB") == f"it said {MASK}"
    assert masker.mask(f"<{PEM}>") == f"<{MASK}>"


@pytest.mark.parametrize("line", PEM.splitlines()[::2])
def test_the_lines_around_a_key_are_no_secret(line: str) -> None:
    assert not found(line, PEM)
    assert not found(f"{line}\nXXXXYYYY\n", PEM)


def test_a_long_key_has_few_forms() -> None:
    lines = [f"{number:064x}" for number in range(64)]
    key = "\n".join(("-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----", ""))
    assert len(forms(key) - set(lines)) <= 20


def test_a_masker_without_secrets_says_so() -> None:
    masker = Masker()
    assert not masker.has_secrets
    masker.learn_secrets([])
    assert not masker.has_secrets
    masker.learn_secrets([SECRET])
    assert masker.has_secrets
