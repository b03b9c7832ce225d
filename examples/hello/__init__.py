"""The smallest node of one's own: used by examples/hello.yaml."""

from isolane import NodeContext, node


@node("hello.greet")
def greet(ctx: NodeContext, *, name: str) -> dict[str, str]:
    """Greet somebody."""
    ctx.log(f"greeting {name}")
    return {"greeting": f"Hello, {name}!"}
