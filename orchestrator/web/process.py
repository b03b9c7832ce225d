"""The web process: the application, and the limits from its settings."""

from django.conf import settings

from foundation.ready_file import write_ready_file
from orchestrator.asgi import application, refusal
from orchestrator.web.limits import requests_at_work
from orchestrator.web.serve import serve


def run(address: str, port: int) -> None:
    """Serve until stopped."""
    serve(
        application,
        address=address,
        port=port,
        on_listening=lambda: write_ready_file(settings.ENV.ready_file),
        session_cookie=settings.SESSION_COOKIE_NAME,
        refusal=refusal,
        at_work=requests_at_work(settings.ENV.database_pool_size),
        body_bytes=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
        connections_per_address=settings.ENV.web_connections_per_address,
    )
