"""A definition fits its type before anything is stored; refusals name the field and the way out."""

from typing import Any

import pytest

from foundation.errors import InvalidInput
from resources.services.definition_rules import DefinitionInput, check_definition_input

DATABASE = {"host": "db.example.com", "dbname": "billing", "user": "reader"}
API = {"base_url": "https://api.example.com/v1"}


def wanted(**changes: Any) -> DefinitionInput:
    fields = {"name": "billing-db", "type": "database", "config": DATABASE, **changes}
    return DefinitionInput(**fields)


def test_what_fits_is_taken_and_its_stored_secrets_named() -> None:
    assert check_definition_input(wanted()) == frozenset()
    assert check_definition_input(wanted(secrets={"password": "billing-password"})) == {
        "billing-password"
    }
    for reference in ("env:BILLING", "file:billing"):
        assert check_definition_input(wanted(secrets={"password": reference})) == frozenset()
    assert check_definition_input(wanted(type="cache", config={})) == frozenset()


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"name": "../x"}, "name", "'../x' is not usable"),
        ({"type": "databse"}, "type", "known are: cache, database, http_api, model"),
        ({"type": "a'; drop table x"}, "type", "is unknown"),
        ({"type": ""}, "type", "is unknown"),
        ({"scope": "forever"}, "scope", "scope is 'forever'; use step or execution"),
        ({"config": {**DATABASE, "colour": 1}}, "config", "unknown field 'colour'"),
        ({"config": {"host": "db.example.com"}}, "config", "'isolane resources types' shows"),
        ({"config": {**DATABASE, "port": "x"}}, "config.port", "expected integer, got string"),
        ({"config": {**DATABASE, "port": 0}}, "config.port", "config.port: "),
        ({"config": {**DATABASE, "password": "hunter2-x"}}, "config.password", "secrets set"),
        ({"config": {**DATABASE, "host": "127.0.0.1"}}, "config.host", "not allowed"),
        ({"config": {**DATABASE, "host": "localhost"}}, "config.host", "not allowed"),
        ({"config": {**DATABASE, "host": "10.0.0.1"}}, "config.host", "ISOLANE_RESOURCE_NETWORKS"),
        ({"config": {**DATABASE, "host": "169.254.169.254"}}, "config.host", "not allowed"),
        ({"config": {**DATABASE, "host": "/var/run/postgresql"}}, "config.host", "one host name"),
        ({"config": {**DATABASE, "host": "a,b"}}, "config.host", "one host name"),
        ({"config": {**DATABASE, "mint": {"roles": ["app"]}}}, "secrets.password", "missing"),
        ({"type": "http_api", "config": {"base_url": "http://[::1]/"}}, "config.base_url", "not allowed"),
        ({"type": "http_api", "config": {"base_url": "file:///etc"}}, "config.base_url", "http"),
        ({"type": "http_api", "config": {**API, "auth": "bearer"}}, "secrets", "needs the secret token"),
        ({"secrets": {"pasword": "x"}}, "secrets", "takes no secret 'pasword'; known are password"),
        ({"type": "cache", "config": {}, "secrets": {"a": "b"}}, "secrets", "known are none"),
        ({"secrets": {"password": 7}}, "secrets.password", "is not a reference"),
        ({"secrets": []}, "secrets", "secrets is not an object"),
        ({"secrets": {"password": "vault:x"}}, "secrets.password", "scheme 'vault' is unknown"),
        ({"secrets": {"password": "../../etc/passwd"}}, "secrets.password", "is not a reference"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(changes: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_definition_input(wanted(**changes))
    assert said in refused.value.detail
    assert refused.value.field == field


def test_a_secret_in_place_of_its_reference_is_not_repeated() -> None:
    with pytest.raises(InvalidInput, match="isolane secrets set NAME") as refused:
        check_definition_input(wanted(secrets={"password": "Hunter2!Hunter2!"}))
    assert "Hunter2" not in refused.value.detail
