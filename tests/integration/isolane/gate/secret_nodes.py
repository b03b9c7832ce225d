"""The node of a step that looks for the secrets of the resources that it uses."""

from typing import Any

from isolane import NodeContext, node
from tests.secret_search import Needle, Search


@node("secrets.search")
def search(
    ctx: NodeContext,
    *,
    resources: list[str],
    needles: list[Needle],
    used: bool = True,
    folders: list[str] | None = None,
) -> dict[str, Any]:
    """Open resources, use them unless they cannot be reached, search while they are open, and use them again."""
    for name in resources:
        ctx.resource(name)
    answers = [ctx.check_resource(name) for name in resources if used]
    found = Search(needles, folders).everything()
    answers += [ctx.check_resource(name) for name in resources if used]
    return found | {"answers": answers}
