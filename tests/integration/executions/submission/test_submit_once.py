"""The same key makes one run, whatever Redis remembers; the constraint decides."""

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import redis
from django.db import connection
from pytest_django import Settings

from executions.models import Execution
from executions.services.publishing import publish
from executions.submission import idempotency
from executions.submission.replay import replay
from executions.submission.submit import IdempotencyConflict, RunRequest, Submitted, submit
from executions.worker.boot import WorkerBoot
from tenants.scope import TenantRef, tenant_scope
from tests.factories import document, everything_of, steps_of
from tests.integration.executions.threads import at_once

KEY = "order-4711"


@pytest.fixture(autouse=True)
def _flows(acme: TenantRef, globex: TenantRef, boot: WorkerBoot, broker: "redis.Redis") -> None:
    """Both tenants have a blueprint of the same name, and Redis remembers nothing."""
    for tenant in (acme, globex):
        with tenant_scope(tenant):
            publish({**document(), "inputs": {"properties": {"id": {"type": "integer"}}}})


@pytest.fixture(autouse=True)
def _fresh_client() -> Iterator[None]:
    """A rest that one test caused must not reach the next."""
    idempotency._keys.cache_clear()
    yield
    idempotency._keys.cache_clear()


def ask(tenant: TenantRef, **changes: Any) -> Submitted:
    given: dict[str, Any] = {"blueprint": "flow", "inputs": {"id": 7}, "requested_by": "ann"}
    return submit(tenant, RunRequest(**{**given, "idempotency_key": KEY, **changes}))


def how_many(tenant: TenantRef) -> int:
    with tenant_scope(tenant):
        return Execution.objects.count()


def use(redis_state: str, broker: "redis.Redis", settings: Settings, folder: Path) -> None:
    """Bring Redis into the state that is asked for."""
    if redis_state == "emptied":
        broker.flushall()
    elif redis_state == "away":
        settings.REDIS_URL = f"unix://{folder}/nobody.sock"
    elif redis_state == "none":
        settings.REDIS_URL = ""


@pytest.mark.parametrize("redis_state", ["remembers", "emptied", "away", "none"])
def test_the_same_request_again_gives_the_same_run_and_writes_nothing(
    redis_state: str,
    acme: TenantRef,
    globex: TenantRef,
    broker: "redis.Redis",
    settings: Settings,
    tmp_path: Path,
) -> None:
    ask(globex)
    first = ask(acme)
    before = everything_of(acme), everything_of(globex)
    use(redis_state, broker, settings, tmp_path)
    second = ask(acme, requested_by="bob")
    assert (first.is_new, second.is_new) == (True, False)
    assert second.execution.id == first.execution.id
    assert (everything_of(acme), everything_of(globex)) == before


@pytest.mark.parametrize("redis_state", ["remembers", "emptied", "away", "none"])
@pytest.mark.parametrize("changes", [{"inputs": {"id": 8}}, {"seed": 1}, {"version": 1}])
def test_the_same_key_with_something_else_is_refused(
    redis_state: str,
    changes: dict[str, Any],
    acme: TenantRef,
    broker: "redis.Redis",
    settings: Settings,
    tmp_path: Path,
) -> None:
    ask(acme)
    before = everything_of(acme)
    use(redis_state, broker, settings, tmp_path)
    with pytest.raises(IdempotencyConflict) as caught:
        ask(acme, **changes)
    assert (caught.value.code, caught.value.http_status) == ("idempotency_conflict", 409)
    assert caught.value.field == "idempotency_key"
    assert KEY in str(caught.value)
    assert everything_of(acme) == before


def test_a_refused_request_takes_no_key(acme: TenantRef) -> None:
    with pytest.raises(Exception, match="id"):
        ask(acme, inputs={"id": "seven"})
    assert ask(acme).is_new


@pytest.mark.parametrize("redis_state", ["remembers", "away"])
def test_two_at_once_make_one_run(
    redis_state: str,
    acme: TenantRef,
    broker: "redis.Redis",
    settings: Settings,
    tmp_path: Path,
) -> None:
    use(redis_state, broker, settings, tmp_path)
    both = at_once([partial(ask, acme), partial(ask, acme)])
    assert len({submitted.execution.id for submitted in both}) == 1
    assert sorted(submitted.is_new for submitted in both) == [False, True]
    assert how_many(acme) == 1


def test_of_two_different_ones_at_once_one_is_refused(acme: TenantRef) -> None:
    def attempt(number: int) -> bool:
        try:
            return ask(acme, inputs={"id": number}).is_new
        except IdempotencyConflict:
            return False

    assert sorted(at_once([partial(attempt, 1), partial(attempt, 2)])) == [False, True]
    assert how_many(acme) == 1


def test_the_same_key_in_two_tenants_makes_two_runs(acme: TenantRef, globex: TenantRef) -> None:
    ours, theirs = ask(acme), ask(globex, inputs={"id": 8})
    assert (ours.is_new, theirs.is_new) == (True, True)
    assert ours.execution.id != theirs.execution.id
    assert (how_many(acme), how_many(globex)) == (1, 1)


@pytest.mark.parametrize("changes", [{}, {"inputs": {"id": 8}}])
def test_a_key_whose_run_is_gone_is_free_again(changes: dict[str, Any], acme: TenantRef) -> None:
    first = ask(acme)
    with tenant_scope(acme):
        Execution.objects.filter(pk=first.execution.pk).delete()
    second = ask(acme, **changes)
    assert second.is_new
    assert second.execution.id != first.execution.id
    assert steps_of(acme, second.execution.id) == {"one": "pending", "two": "pending"}
    assert not ask(acme, **changes).is_new


def test_requests_without_a_key_are_all_new(acme: TenantRef, broker: "redis.Redis") -> None:
    assert [ask(acme, idempotency_key="").is_new for _ in range(2)] == [True, True]
    assert how_many(acme) == 2
    assert broker.keys("isolane:idempotency:*") == []


def test_a_duplicate_that_redis_remembers_is_answered_from_the_row_alone(acme: TenantRef) -> None:
    """Even when nobody could submit anew: the blueprint's workers are not asked about."""
    first = ask(acme)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("executions.submission.submit._write", None)
        assert ask(acme).execution.id == first.execution.id


# --- a key counts for its blueprint
@pytest.mark.parametrize("redis_state", ["remembers", "none"])
def test_the_same_key_for_two_blueprints_makes_two_runs(
    redis_state: str,
    acme: TenantRef,
    globex: TenantRef,
    broker: "redis.Redis",
    settings: Settings,
    tmp_path: Path,
) -> None:
    with tenant_scope(acme):
        publish({**document(), "name": "secret"})
    secret = ask(acme, blueprint="secret", inputs={})
    use(redis_state, broker, settings, tmp_path)
    ours = ask(acme)
    assert (ours.is_new, ours.execution.id != secret.execution.id) == (True, True)
    assert ask(acme, blueprint="secret", inputs={}).execution.id == secret.execution.id
    again = replay(acme, secret.execution.id, requested_by="ann", idempotency_key="again")
    assert replay(acme, ours.execution.id, requested_by="ann", idempotency_key="again").is_new
    assert again.is_new
    assert how_many(globex) == 0


def test_keys_from_before_count_for_the_blueprint_that_they_were_used_for(
    acme: TenantRef, globex: TenantRef
) -> None:
    first, theirs = ask(acme), ask(globex)
    for tenant in (acme, globex):
        with tenant_scope(tenant), connection.cursor() as cursor:
            Execution.objects.update(key_blueprint=0)  # as before the migration
            cursor.execute(import_module("executions.migrations.0007_keys_of_blueprints").KEEP_KEYS)
    assert ask(acme).execution.id == first.execution.id
    assert ask(globex).execution.id == theirs.execution.id
    with pytest.raises(IdempotencyConflict):
        ask(acme, inputs={"id": 8})
