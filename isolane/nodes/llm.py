"""The node that asks a language model."""

from dataclasses import asdict
from typing import Annotated, Any

from isolane.context import NodeContext
from isolane.node import node
from isolane.results import Code, StepError
from isolane.shapes import Limits, Uses


@node("llm.chat")
def llm_chat(
    ctx: NodeContext,
    *,
    resource: Annotated[str, Uses("model")],
    prompt: str | None = None,
    messages: list[dict[str, Any]] | None = None,
    max_tokens: Annotated[int, Limits(minimum=1)] | None = None,
    temperature: Annotated[float, Limits(minimum=0, maximum=2)] | None = None,
) -> dict[str, Any]:
    """Ask a model and return its answer; the tokens are a cost of the step."""
    if (prompt is None) == (messages is None):
        raise StepError(Code.POLICY_VIOLATION, "llm.chat: give exactly one of prompt and messages")
    asked = messages if messages is not None else [{"role": "user", "content": prompt}]
    reply = ctx.resource(resource).chat(asked, max_tokens=max_tokens, temperature=temperature)
    ctx.cost("tokens", reply.prompt_tokens + reply.completion_tokens)
    return asdict(reply)
