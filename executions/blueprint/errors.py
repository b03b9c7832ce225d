"""What is wrong with a blueprint. Pure."""

from orchestrator.core.errors import InvalidInput

SHOWN = 200  # characters of what others wrote that a message quotes


class InvalidBlueprint(InvalidInput):
    """The document cannot be published; the detail says where and why."""

    code = "invalid_blueprint"
    title = "The blueprint does not fit"


class BadReference(InvalidInput):
    """An expression that does not parse or points nowhere."""

    code = "bad_reference"


def shown(text: str) -> str:
    """A text as a message may quote it: libraries quote whole values."""
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
