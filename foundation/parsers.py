"""Parse the bodies of requests."""

import json
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from isolane.numbers import finite, refuse_constant


class JsonParser(JSONParser):
    """JSON in UTF-8; a number beyond the range of floats is refused, not read as infinite."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None
    ) -> Any:
        """Parse the whole body, up to Django's limit for data in memory."""
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        data = stream.read(limit + 1)
        if len(data) > limit:
            raise RequestDataTooBig
        try:
            return json.loads(data.decode(), parse_constant=refuse_constant, parse_float=finite)
        except ValueError as error:
            raise ParseError(f"The body is not JSON: {error}.") from None
