"""Chat sessions with models, and the one that needs no network."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isolane.results import Code, StepError

Message = Mapping[str, Any]  # as in {"role": "user", "content": "Hello"}
OnText = Callable[[str], object]


@dataclass(frozen=True, kw_only=True)
class ChatReply:
    """The answer of a model."""

    text: str
    prompt_tokens: int  # 0 if the remote server does not report it
    completion_tokens: int
    model: str
    finish_reason: str


class ChatSession(ABC):
    """A session with one model; safe from any thread, and raises RuntimeError when it is used after closing."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._closed = False

    def chat(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        stream: bool = False,
        on_text: OnText | None = None,
    ) -> ChatReply:
        """Return the answer to a conversation; with `stream`, `on_text` is called with each piece as it comes."""
        self._refuse_closed()
        body: dict[str, Any] = {"model": self.model, "messages": [dict(one) for one in messages]}
        if not body["messages"]:
            raise StepError(Code.POLICY_VIOLATION, "messages: the list is empty")
        if max_tokens is not None:
            body["max_tokens"] = max_tokens
        if temperature is not None:
            body["temperature"] = temperature
        if not stream:
            return self._asked(body)
        return self._streamed(body, on_text or _discard)

    @abstractmethod
    def check(self) -> dict[str, Any]:
        """Ask the remote server for a sign of life."""

    def close(self) -> None:
        """End the session for good."""
        self._closed = True

    @abstractmethod
    def _asked(self, body: dict[str, Any]) -> ChatReply: ...

    @abstractmethod
    def _streamed(self, body: dict[str, Any], on_text: OnText) -> ChatReply: ...

    def _refuse_closed(self) -> None:
        if self._closed:
            raise RuntimeError("the session is closed")


class EchoSession(ChatSession):
    """Answers with the last message of the user; a word is a token. For demonstrations and tests."""

    def check(self) -> dict[str, Any]:
        """Answer at once."""
        self._refuse_closed()
        return {"provider": "echo", "model": self.model}

    def _asked(self, body: dict[str, Any]) -> ChatReply:
        messages = body["messages"]
        users = [_text(one) for one in messages if one.get("role") == "user"]
        if not users:
            raise StepError(Code.POLICY_VIOLATION, "messages: none has the role user")
        words = users[-1].split()
        limit = body.get("max_tokens", len(words))
        is_cut = limit < len(words)
        return ChatReply(
            text=" ".join(words[:limit]) if is_cut else users[-1],
            prompt_tokens=sum(len(_text(one).split()) for one in messages),
            completion_tokens=min(len(words), limit),
            model=self.model,
            finish_reason="length" if is_cut else "stop",
        )

    def _streamed(self, body: dict[str, Any], on_text: OnText) -> ChatReply:
        reply = self._asked(body)
        for piece in re.findall(r"\s*\S+\s*", reply.text):
            on_text(piece)
        return reply


def _text(message: Message) -> str:
    return str(message.get("content") or "")


def _discard(text: str) -> None:
    """Drop the piece: no `on_text` was given."""
