"""Pages of long lists."""

from rest_framework.pagination import CursorPagination


class NewestFirst(CursorPagination):
    """Stable while new rows arrive; `next` and `previous` are links to follow."""

    ordering = ("-created_at", "id")
    page_size_query_param = "page_size"
    max_page_size = 200
