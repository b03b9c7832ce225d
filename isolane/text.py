"""Text that may leave the sandbox: bounded, and storable in a database."""

LINE_MAX = 8 * 1024  # characters of one log line
MESSAGE_MAX = 2_000  # characters of a result's or progress report's message


def storable(text: str, limit: int) -> str:
    """Cut text to limit characters and replace what PostgreSQL cannot hold."""
    kept = text if len(text) <= limit else text[: limit - 1] + "…"
    return kept.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
