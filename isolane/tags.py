"""The tag that shows a remote server whose connection, client or request it has."""

TAG_MAX = 63  # bytes: PostgreSQL keeps no more of an application_name


def tag(*, tenant_id: str, execution_id: str, epoch: int) -> str:
    """Return the tag of one placement; a long tenant name is cut, the execution's id never."""
    return f"exec_{execution_id}/{epoch}/{tenant_id}"[:TAG_MAX]
