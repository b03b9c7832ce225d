"""Errors in a blueprint. Pure."""

from foundation.errors import InvalidInput, TooMuchToCheck

SHOWN = 200  # characters of foreign text that a message quotes


class BlueprintError(InvalidInput):
    """A part of a blueprint is invalid; `field` is its path, and `line` its line if the text is known."""

    def __init__(self, detail: str, *, field: str | None = None, line: int | None = None) -> None:
        super().__init__(detail, field=field)
        self.line = line


class InvalidBlueprint(BlueprintError):
    """The document cannot be published; the detail names the place and the reason."""

    code = "invalid_blueprint"
    title = "The blueprint is not valid"


class BlueprintTooExpensive(BlueprintError):
    """Checking the document, or inputs against it, would take too much work; `field` is the cause."""

    code = TooMuchToCheck.code
    http_status = TooMuchToCheck.http_status
    title = TooMuchToCheck.title


class BadReference(BlueprintError):
    """An expression that does not parse or refers to nothing."""

    code = "bad_reference"


def shown(text: str) -> str:
    """Return a text as a message may quote it, shortened."""
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
