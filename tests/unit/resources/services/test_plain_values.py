"""A config can be stored and holds nothing that looks like a secret."""

from typing import Any

import pytest

from foundation.errors import InvalidInput
from resources.services import plain_values
from resources.services.plain_values import MAX_BYTES, SecretInConfig, check_config

VALUE = "hunter2-hunter2"


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"password": VALUE}, "config.password"),
        ({"Password": VALUE}, "config.Password"),
        ({"api_key": VALUE}, "config.api_key"),
        ({"apikey": VALUE}, "config.apikey"),
        ({"token": VALUE}, "config.token"),
        ({"auth_token": VALUE}, "config.auth_token"),
        ({"client-secret": VALUE}, "config.client-secret"),
        ({"headers": {"Authorization": VALUE}}, "config.headers.Authorization"),
        ({"headers": {"X-Api-Key": VALUE}}, "config.headers.X-Api-Key"),
        ({"headers": {"X-Custom": f"Bearer {VALUE}"}}, "config.headers.X-Custom"),
        ({"tokens": [{"token": [VALUE]}]}, "config.tokens[0].token[0]"),
        ({"password": 123456}, "config.password"),
        ({"credentials": VALUE}, "config.credentials"),
        ({"token": "inside"}, "config.token"),
        ({"base_url": f"https://user:{VALUE}@api.example.com/v1"}, "config.base_url"),
        ({"base_url": f"https://{VALUE}@api.example.com/v1"}, "config.base_url"),
        ({"host": f"postgresql://u:{VALUE}@db/x"}, "config.host"),
        ({"note": f"-----BEGIN RSA PRIVATE KEY-----\n{VALUE}"}, "config.note"),
    ],
)  # fmt: skip
def test_what_looks_like_a_secret_is_refused_with_the_way_out(
    config: dict[str, Any], field: str
) -> None:
    with pytest.raises(SecretInConfig, match="isolane secrets set") as refused:
        check_config(config)
    assert refused.value.field == field
    assert refused.value.code == "secret_in_config"
    assert VALUE not in refused.value.detail
    assert "123456" not in refused.value.detail


@pytest.mark.parametrize(
    "config",
    [
        {"host": "db.example.com", "port": 5432, "user": "reader", "mint": {"roles": ["app"]}},
        {"auth": "bearer", "header": "X-Api-Key", "base_url": "https://api.example.com/a@b?c"},
        {"max_tokens": 100, "password": "", "token": None, "basic": True, "ratio": 0.5},
        {"credentials": "brokered"},
        {"credentials": "inside"},
    ],
)
def test_what_is_no_secret_is_taken(config: dict[str, Any]) -> None:
    assert check_config(config) == config


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ([], "config is not an object"),
        (None, "config is not an object"),
        ({"a": "x\0y"}, "config.a contains a NUL"),
        ({"a": "\ud800"}, "config.a is not text in UTF-8"),
        ({"a\0": 1}, "contains a NUL"),
        ({"a": float("nan")}, "config.a is nan; write a finite number"),
        ({"a": float("inf")}, "config.a is inf"),
        ({"a": object()}, "config.a is not JSON"),
        ({"credentials": "maybe"}, "config.credentials is neither 'brokered' nor 'inside'"),
        ({"a": "x" * MAX_BYTES}, f"config is larger than {MAX_BYTES} bytes"),
    ],
)
def test_what_cannot_be_stored_is_refused(config: Any, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        check_config(config)


def test_depth_is_limited() -> None:
    nested: Any = 1
    for _ in range(5000):
        nested = {"a": nested}
    with pytest.raises(InvalidInput, match="nested deeper than 10"):
        check_config(nested)


def test_what_is_too_large_is_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*_: object) -> None:
        raise AssertionError("its values were looked at")

    monkeypatch.setattr(plain_values, "_values", look)
    with pytest.raises(InvalidInput, match="config is larger than"):
        check_config({"a": "x" * 1_000_000})


def test_no_part_of_a_long_text_is_read_twice_for_an_address() -> None:
    """A repetition before the colon would be read again from each letter: a second for 16 KB, hours for a body."""
    before_the_colon = plain_values._URL_WITH_CREDENTIALS.pattern.partition("://")[0]
    assert before_the_colon == "[a-z0-9+.-]"
    assert plain_values._URL_WITH_CREDENTIALS.search("a" * 100_000 + "://u:p@h")
