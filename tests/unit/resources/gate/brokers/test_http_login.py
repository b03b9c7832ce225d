"""resources.gate.brokers.http_login: the origin and the header of a grant."""

import base64
from typing import Any

import pytest

from isolane.protocol import Grant
from resources.gate.brokers.http_login import HttpLogin, http_login

SECRET = "s3cret-token-value"


def grant(kind: str, secrets: dict[str, str] | None = None, **config: Any) -> Grant:
    return Grant(
        name="shop",
        type=kind,
        definition="shop-api",
        scope="step",
        config=config,
        secrets=secrets or {},
    )


@pytest.mark.parametrize(
    ("config", "header", "value"),
    [
        ({"auth": "bearer"}, "Authorization", f"Bearer {SECRET}"),
        (
            {"auth": "basic", "user": "ann"},
            "Authorization",
            "Basic " + base64.b64encode(f"ann:{SECRET}".encode()).decode(),
        ),
        ({"auth": "header", "header": "X-Api-Key"}, "X-Api-Key", SECRET),
        ({}, "", ""),
    ],
)
def test_a_service_is_asked_as_auth_says(config: dict[str, Any], header: str, value: str) -> None:
    secrets = {"token": SECRET} if config else {}
    login = http_login(grant("http_api", secrets, base_url="https://API.test/v1", **config))
    expected = HttpLogin(scheme="https", host="api.test", port=443, header=header, value=value)
    assert login == expected
    assert SECRET not in repr(login)


def test_a_model_is_asked_with_its_key_if_it_has_one() -> None:
    config: dict[str, Any] = {
        "provider": "openai",
        "model": "small",
        "base_url": "http://m.test:8080/v1",
    }
    without = HttpLogin(scheme="http", host="m.test", port=8080)
    assert http_login(grant("model", **config)) == without
    login = http_login(grant("model", {"api_key": SECRET}, **config))
    assert (login.header, login.value) == ("Authorization", f"Bearer {SECRET}")


@pytest.mark.parametrize(
    ("url", "authority", "place"),
    [
        ("https://a.test", "a.test", "a.test:443"),
        ("http://a.test:443", "a.test:443", "a.test:443"),
        ("https://[2001:db8::1]:99", "[2001:db8::1]:99", "[2001:db8::1]:99"),
        ("http://[2001:db8::1]", "[2001:db8::1]", "[2001:db8::1]:80"),
    ],
)
def test_an_origin_has_a_name_for_servers_and_one_for_people(
    url: str, authority: str, place: str
) -> None:
    login = http_login(grant("http_api", base_url=url))
    assert (login.authority, login.place) == (authority, place)


def test_a_secret_that_no_header_can_carry_is_refused_and_not_repeated() -> None:
    secrets = {"token": f"{SECRET}\r\nX: 1"}
    with pytest.raises(ValueError, match="a character that no header can carry") as refused:
        http_login(grant("http_api", secrets, base_url="https://a.test", auth="bearer"))
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "config"), [("model", {"provider": "echo", "model": "x"}), ("database", {})]
)
def test_what_has_no_http_server_has_no_login(kind: str, config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"shop-api: type {kind} has no HTTP server"):
        http_login(grant(kind, **config))
