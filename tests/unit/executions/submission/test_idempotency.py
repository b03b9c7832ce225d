import logging
from typing import Any

import pytest
import redis
from pytest_django import Settings

from executions.submission import idempotency
from executions.submission.idempotency import MAX_SECONDS, REST_SECONDS, CommittedKeys, Key, Seen


class FakeRedis(redis.Redis):
    """Answers as told; an answer that is an exception is raised. It never connects."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.answers = list(answers)
        self.commands: list[str] = []

    def execute_command(self, *args: Any, **options: Any) -> Any:
        self.commands.append(str(args[0]))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Clock:
    """Stands still until it is moved."""

    def __init__(self, *, step: float = 0.0) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.mark.parametrize("seen", Seen)
def test_the_answer_of_the_script_is_what_is_seen(seen: Seen) -> None:
    client = FakeRedis(seen.value.encode())
    assert CommittedKeys(client, clock=Clock()).check("name", "digest") is seen
    assert client.commands == ["EVALSHA"]  # one round trip


def test_a_server_that_does_not_know_the_script_gets_it() -> None:
    client = FakeRedis(redis.exceptions.NoScriptError(), b"duplicate")
    assert CommittedKeys(client, clock=Clock()).check("name", "digest") is Seen.DUPLICATE
    assert client.commands == ["EVALSHA", "EVAL"]


@pytest.mark.parametrize(
    "answer",
    [
        redis.ConnectionError("refused"),
        redis.TimeoutError("slow"),
        redis.ResponseError("WRONGTYPE"),
        redis.AuthenticationError("no"),
        OSError("reset"),
        b"\xff",
        b"perhaps",
        7,
        None,
        [b"duplicate"],
    ],
)
def test_a_wrong_answer_fails_open_and_then_redis_has_a_rest(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    client = FakeRedis(answer, b"duplicate")
    keys = CommittedKeys(client, clock=clock)
    with caplog.at_level(logging.WARNING):
        assert [keys.check("name", "digest") for _ in range(3)] == [Seen.NEW] * 3
        keys.remember("name", "digest")
    assert client.commands == ["EVALSHA"]
    assert [getattr(record, "event", "") for record in caplog.records] == ["IDEMPOTENCY_OPEN"]
    clock.now = REST_SECONDS
    assert keys.check("name", "digest") is Seen.DUPLICATE


def test_a_failing_remember_is_no_error() -> None:
    CommittedKeys(FakeRedis(redis.ConnectionError("refused")), clock=Clock()).remember("n", "d")


def test_a_slow_answer_counts_but_is_the_last_for_a_while() -> None:
    client = FakeRedis(b"conflict")
    keys = CommittedKeys(client, clock=Clock(step=MAX_SECONDS * 1.1))
    assert keys.check("name", "digest") is Seen.CONFLICT
    assert keys.check("name", "digest") is Seen.NEW
    assert client.commands == ["EVALSHA"]


def test_without_redis_everything_is_new(settings: Settings) -> None:
    settings.REDIS_URL = ""
    key = Key(tenant_id=1, blueprint="flow", text="key")
    idempotency.remember(key, "digest")
    assert idempotency.check(key, "digest") is Seen.NEW
