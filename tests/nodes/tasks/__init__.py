"""Plain functions that steps use as `task:tests.nodes.tasks.…`, and what is none."""

from dataclasses import dataclass
from datetime import date
from typing import Any

from isolane import NodeContext, node
from tests.waiting import wait_for  # noqa: F401 - defined elsewhere


def price(items: list[str], *, each: float = 2.5, note=None) -> dict[str, Any]:  # type: ignore[no-untyped-def]
    """Price some items.

    At one price each.
    """
    return {"total": len(items) * each, "note": note}


async def later(text: str, **options: Any) -> str:
    """Return the text after a turn of the event loop."""
    return text + "".join(options)


def due(day: date, since: Any = date(2026, 1, 1), loud: "Nowhere | None" = None) -> str:  # type: ignore[name-defined]  # noqa: F821
    """Take what has no shape in JSON."""
    return f"{day} {since} {loud}"


def positional(a: int, /) -> int:
    """Cannot be called by name."""
    return a


def many(*numbers: int) -> int:
    """Cannot be called by name."""
    return sum(numbers)


def _private() -> None: ...


@dataclass
class Order:
    """No function."""

    number: int


@node("test.among_tasks")
def among_tasks(ctx: NodeContext) -> None:
    """Be a node by another name."""


alias = price
