"""The web process: the application, and the limits from its settings."""

from django.conf import settings

from orchestrator.asgi import application, refusal
from orchestrator.web.limits import requests_at_work
from orchestrator.web.serve import serve


def run(address: str, port: int) -> None:
    """Serve until stopped."""
    serve(
        application,
        address=address,
        port=port,
        session_cookie=settings.SESSION_COOKIE_NAME,
        refusal=refusal,
        at_work=requests_at_work(settings.ENV.database_pool_size),
        body_bytes=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
        connections_per_address=settings.ENV.web_connections_per_address,
    )
