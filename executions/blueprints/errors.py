"""What is wrong with a blueprint. Pure."""

from foundation.errors import InvalidInput, TooMuchToCheck

SHOWN = 200  # characters of what others wrote that a message quotes


class BlueprintError(InvalidInput):
    """A part of a blueprint does not fit; `field` is its path, and `line` its line where the text is known."""

    def __init__(self, detail: str, *, field: str | None = None, line: int | None = None) -> None:
        super().__init__(detail, field=field)
        self.line = line


class InvalidBlueprint(BlueprintError):
    """The document cannot be published; the detail says where and why."""

    code = "invalid_blueprint"
    title = "The blueprint does not fit"


class BlueprintTooExpensive(BlueprintError):
    """Checking the document, or inputs against it, would take too much work; `field` is what is to blame."""

    code = TooMuchToCheck.code
    http_status = TooMuchToCheck.http_status
    title = TooMuchToCheck.title


class BadReference(BlueprintError):
    """An expression that does not parse or points nowhere."""

    code = "bad_reference"


def shown(text: str) -> str:
    """A text as a message may quote it: libraries quote whole values."""
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
