"""The bodies of requests."""

import json
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from isolane.numbers import finite, refuse_constant


class JsonParser(BaseParser):
    """JSON; a number that no float can hold is refused, and not taken as infinite."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Any = None,
    ) -> Any:
        """Read all of it; how much that may be, Django has seen to."""
        try:
            text = stream.read().decode()
            return json.loads(text, parse_constant=refuse_constant, parse_float=finite)
        except ValueError as error:
            raise ParseError(f"The body is no JSON: {error}.") from None
