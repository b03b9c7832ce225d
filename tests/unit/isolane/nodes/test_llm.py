"""isolane.nodes.llm: a question of a step, and what it costs."""

from typing import Any

import pytest

from isolane.node import default_registry
from isolane.results import Code, StepError
from isolane.testing import run_node
from tests.unit.isolane.providers.grants import model_grant


def chat(**parameters: Any) -> Any:
    grant = model_grant(provider="echo")
    return run_node("llm.chat", resources={"model": grant}, resource="model", **parameters)


def test_the_node_says_what_it_needs() -> None:
    node = default_registry.get("llm.chat")
    assert node is not None
    properties = node.description().parameters["properties"]
    assert properties["resource"] == {"type": "string", "resource": "model"}


def test_a_prompt_is_answered_and_paid_for() -> None:
    run = chat(prompt="Say hello world")
    assert run.output == {
        "text": "Say hello world",
        "prompt_tokens": 3,
        "completion_tokens": 3,
        "model": "small",
        "finish_reason": "stop",
    }
    assert run.costs == {"tokens": 6.0}


def test_a_conversation_is_answered() -> None:
    messages = [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "a b c"}]
    run = chat(messages=messages, max_tokens=2, temperature=0)
    assert (run.output["text"], run.output["finish_reason"]) == ("a b", "length")
    assert run.costs == {"tokens": 7.0}


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({}, "exactly one of prompt and messages"),
        ({"prompt": "a", "messages": []}, "exactly one of prompt and messages"),
        ({"messages": []}, "messages: the list is empty"),
        ({"messages": ["a"]}, r"parameter messages\[0\]: expected object"),
        ({"prompt": "a", "max_tokens": 0}, "parameter max_tokens: 0 is below 1"),
        ({"prompt": "a", "temperature": 3}, "parameter temperature: 3.0 is above 2"),
    ],
)
def test_a_question_that_is_none_is_refused(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(StepError, match=reason) as refused:
        chat(**parameters)
    assert refused.value.code is Code.POLICY_VIOLATION
