"""Text that may leave the sandbox: bounded, and storable in a database."""

LINE_MAX = 8 * 1024  # characters of one log line
MESSAGE_MAX = 2_000  # characters of a result's or progress report's message
TRACE_MAX = 16_000  # characters of an unexpected exception's trace


def storable(text: str, limit: int) -> str:
    """Cut text to `limit` characters and replace those that PostgreSQL cannot store."""
    kept = text if len(text) <= limit else text[: limit - 1] + "…"
    return kept.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def storable_end(text: str, limit: int) -> str:
    """Do the same, but keep the end, where a trace shows the exception."""
    return storable(text if len(text) <= limit else "…" + text[1 - limit :], limit)
