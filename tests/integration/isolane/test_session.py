"""isolane.session with resources: a real runner, a real remote server, and what is said of both."""

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isolane.protocol import (
    Cancel,
    Close,
    Closed,
    Frame,
    Grant,
    Log,
    Open,
    Ready,
    Resource,
    ResourceScope,
    Run,
)
from isolane.results import Code, StepResult
from isolane.stream import Stream
from tests.customer import Customer
from tests.integration.isolane.bare_zygote import ROOT, bare_zygote
from tests.waiting import wait_for

SECRET = "wrong-and-secret"


class Talk:
    """The worker's end of a runner's stream."""

    def __init__(self, stream: Stream, customer: Customer) -> None:
        self._stream = stream
        self._customer = customer
        self.execution_id = ""

    def open(self, *grants: Grant) -> list[tuple[str, str, str]]:
        self.execution_id = str(uuid.uuid4())
        opened = Open(
            execution_id=self.execution_id,
            tenant_id="acme",
            user_id="ada",
            request_id="r1",
            epoch=1,
            resources=grants,
        )
        return events(self._ask(opened, Ready)[:-1])

    def run(
        self, uses: str, step: str = "pay", **parameters: Any
    ) -> tuple[StepResult, list[tuple[str, str, str]]]:
        *before, result = self._ask(a_run(uses, step, parameters), StepResult)
        assert isinstance(result, StepResult)
        reused = [("reused", name, step) for name in result.reused.values()]
        return result, events(before) + reused

    def run_until_heard(self, uses: str, event: tuple[str, str, str], **parameters: Any) -> None:
        """Run a step that ends only when it is told to, which it is when this was heard of it."""
        self._stream.send(a_run(uses, event[2], parameters))
        heard = self._stream.receive(20)
        assert events([heard]) == [event]
        self._stream.send(Cancel())
        assert isinstance(self._stream.receive(20), StepResult)

    def close(self) -> tuple[tuple[str, ...], list[tuple[str, str, str]]]:
        *before, closed = self._ask(Close(), Closed)
        assert isinstance(closed, Closed)
        wait_for(lambda: not self.sessions(), "the remote server to be rid of it")
        return closed.errors, events(before)

    def sessions(self) -> list[int]:
        return [row["pid"] for row in self._customer.activity(self.execution_id)]

    def _ask(self, frame: Any, answer: type) -> list[Frame]:
        self._stream.send(frame)
        frames: list[Frame] = []
        while not frames or not isinstance(frames[-1], answer):
            frames.append(self._stream.receive(20))
        return [frame for frame in frames if not isinstance(frame, Log)]


def a_run(uses: str, step: str, parameters: dict[str, Any]) -> Run:
    return Run(
        step=step, uses=f"resource.{uses}", parameters=parameters, variables={}, attempt=1, seed=1,
        timeout_s=30.0, idempotency_key="key",
    )  # fmt: skip


def events(frames: list[Frame]) -> list[tuple[str, str, str]]:
    assert [frame for frame in frames if not isinstance(frame, Resource)] == []
    return [(one.event, one.name, one.step) for one in frames if isinstance(one, Resource)]


@pytest.fixture
def talk(customer: Customer, tmp_path: Path) -> Iterator[Talk]:
    arguments = ("--path", ROOT, "--package", "tests.integration.isolane.resource_nodes")
    with bare_zygote(*arguments, installed=True) as zygote:
        assert "versions" in zygote.hello()
        with contextlib.closing(zygote.fork(tmp_path)) as runner:
            yield Talk(runner.stream, customer)
            runner.stream.close()
            runner.wait()


def a_grant(
    customer: Customer,
    name: str = "billing",
    *,
    scope: ResourceScope = "execution",
    eager: bool = False,
    password: str = "",
) -> Grant:
    return Grant(
        name=name,
        type="database",
        definition=f"{name}-db",
        scope=scope,
        config={
            "host": customer.host,
            "port": customer.port,
            "dbname": customer.dbname,
            "user": customer.reader.user,
        },
        secrets={"password": password or customer.reader.password},
        address="127.0.0.1",
        eager=eager,
    )


def test_ten_steps_share_one_connection_that_ends_with_the_context(
    talk: Talk, customer: Customer
) -> None:
    assert talk.open(a_grant(customer)) == []
    assert talk.sessions() == []
    runs = [talk.run("use", step=f"s{number}", name="billing") for number in range(10)]
    assert len({str(result.output) for result, _ in runs}) == 1
    assert talk.sessions() == [runs[0][0].output["pid"]]
    said = [event for _, events in runs for event in events]
    expected = [("reused", "billing", f"s{number}") for number in range(1, 10)]
    assert said == [("allocated", "billing", "s0"), *expected]
    assert talk.close() == ((), [("disposed", "billing", "")])


def test_that_a_step_uses_a_handle_is_heard_while_it_still_does(
    talk: Talk, customer: Customer
) -> None:
    talk.open(a_grant(customer))
    talk.run("use", step="s0", name="billing")
    talk.run_until_heard("use_and_hang", ("reused", "billing", "s1"), name="billing")
    assert talk.close() == ((), [("disposed", "billing", "")])


def test_a_handle_that_a_later_step_loses_is_told_in_an_order_that_can_be(
    talk: Talk, customer: Customer
) -> None:
    talk.open(a_grant(customer))
    first, _ = talk.run("use", step="s0", name="billing")
    second, said = talk.run("lose_and_use", step="s1", name="billing")
    assert second.status == "succeeded"
    assert second.output["id"] != first.output["id"]
    # It was handed on before it was closed; what was opened instead is told at once.
    assert said == [
        ("allocated", "billing", "s1"),
        ("reused", "billing", "s1"),
        ("disposed", "billing", "s1"),
    ]
    assert talk.close() == ((), [("disposed", "billing", "")])


def test_what_is_said_late_is_not_told_of_the_next_execution(
    talk: Talk, customer: Customer
) -> None:
    talk.open(a_grant(customer))
    talk.run("say_late", name="billing")
    late = ("reused", "billing", "of-a-thread")
    assert talk.close() == ((), [late, ("disposed", "billing", "")])
    assert talk.open(a_grant(customer)) == []
    assert talk.run("use", name="billing")[1] == [("allocated", "billing", "pay")]
    assert talk.close() == ((), [("disposed", "billing", "")])


def test_what_is_eager_is_open_before_ready(talk: Talk, customer: Customer) -> None:
    assert talk.open(a_grant(customer, eager=True)) == [("allocated", "billing", "")]
    assert len(talk.sessions()) == 1
    assert talk.close() == ((), [("disposed", "billing", "")])


@pytest.mark.parametrize("uses", ["use", "use_and_fail"])
def test_what_is_a_steps_own_is_gone_before_its_result(
    talk: Talk, customer: Customer, uses: str
) -> None:
    talk.open(a_grant(customer, scope="step"))
    _, said = talk.run(uses, name="billing")
    assert said == [("allocated", "billing", "pay"), ("disposed", "billing", "pay")]
    wait_for(lambda: not talk.sessions(), "the session to end")
    assert talk.close() == ((), [])


def test_a_failure_names_no_secret_and_the_context_goes_on(talk: Talk, customer: Customer) -> None:
    grants = a_grant(customer, eager=True, password=SECRET), a_grant(customer, "other")
    assert talk.open(*grants) == [("failed", "billing", "")]
    result, said = talk.run("use", name="billing")
    assert said == [("failed", "billing", "pay")]
    assert result.code is Code.RESOURCE_ERROR
    assert "resource billing of type database cannot be opened" in result.message
    assert SECRET not in repr(result)
    result, _ = talk.run("use", name="nowhere")
    assert result.code is Code.POLICY_VIOLATION
    assert talk.run("use", name="other")[0].status == "succeeded"
    assert talk.close() == ((), [("disposed", "other", "")])


def test_a_saved_handle_and_a_saved_context_are_worth_nothing_later(
    talk: Talk, customer: Customer
) -> None:
    talk.open(a_grant(customer))
    talk.run("keep", name="billing")
    first = talk.execution_id
    assert talk.close() == ((), [("disposed", "billing", "")])
    assert talk.open(a_grant(customer)) == []
    result, said = talk.run("use_kept", name="billing")
    assert result.output == [
        f"RuntimeError: the context of {first} is closed",
        "OperationalError: the connection is closed",
    ]
    assert said == []
    assert talk.close() == ((), [])


def test_a_forked_child_neither_uses_nor_closes_nor_speaks(talk: Talk, customer: Customer) -> None:
    talk.open(a_grant(customer, scope="step"), a_grant(customer, "other"))
    for name in ("billing", "other"):
        result, said = talk.run("fork", name=name)
        assert result.status == "succeeded", result
        assert result.output["code"] != 0
        assert said[0] == ("allocated", name, "pay")
    assert talk.close() == ((), [("disposed", "other", "")])


def test_a_socket_that_was_left_open_is_reported(talk: Talk) -> None:
    talk.open()
    talk.run("leave_socket")
    assert talk.close() == (("1 socket was left open",), [])
