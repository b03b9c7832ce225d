"""Paths of pages for people, who sign in with a password and have a session. Pure."""

ADMIN_PREFIX = "/admin/"
SIGN_IN_PATHS = frozenset({"/login/", "/logout/"})
PASSWORD_PATHS = frozenset({"/login/", "/admin/login/"})  # where passwords are sent to


def is_for_people(path: str) -> bool:
    """Return True for a page that knows sessions only; an API key sent along is ignored."""
    return path.startswith(ADMIN_PREFIX) or path in SIGN_IN_PATHS
