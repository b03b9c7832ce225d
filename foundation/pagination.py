"""Pages of long lists."""

from datetime import timedelta
from typing import Any

from django.utils.dateparse import parse_datetime
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination


class NewestFirst(CursorPagination):
    """Stable while new rows arrive; `next` and `previous` are links to follow."""

    ordering = ("-created_at", "id")
    page_size_query_param = "page_size"
    max_page_size = 200

    def decode_cursor(self, request: Any) -> Any:
        """Refuse a cursor that was not issued here, before it becomes part of a query."""
        cursor = super().decode_cursor(request)
        if (
            cursor is not None
            and cursor.position is not None
            and not _is_time(str(cursor.position))
        ):
            raise NotFound(self.invalid_cursor_message)
        return cursor


def _is_time(text: str) -> bool:
    try:
        at = parse_datetime(text)
    except ValueError:
        return False
    # Issued cursors are in UTC; PostgreSQL would refuse some offsets that Python accepts.
    return at is not None and at.utcoffset() == timedelta(0)
