"""Values that were published as samples, so that everybody knows them. Pure."""

from urllib.parse import unquote, urlsplit

from orchestrator.processes import CREDENTIALS

PASSWORD = "change-me"  # noqa: S105 - what stood in the sample, as any login's
ENCRYPTION_KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


def sample_in(variable: str, value: str) -> str:
    """The published value that this variable holds; empty if it holds none."""
    if variable not in CREDENTIALS:
        return ""
    if variable == "ENCRYPTION_KEYS":
        return ENCRYPTION_KEY if ENCRYPTION_KEY in value else ""
    secret = _password(value) if variable.endswith("_URL") else value
    return PASSWORD if secret.lower().startswith(PASSWORD) else ""


def _password(url: str) -> str:
    """The one in an address; an address in another notation holds it somewhere."""
    try:
        return unquote(urlsplit(url).password or "") or (PASSWORD if PASSWORD in url else "")
    except ValueError:
        return PASSWORD if PASSWORD in url else ""
