"""Web, for any ASGI server: `uvicorn orchestrator.asgi:application`."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.settings")
os.environ.setdefault("DATABASE_POOL_SIZE", "20")
# Also the Celery application, so that web can publish.
from orchestrator.celery import app as celery_app

celery_app.set_default()
application = get_asgi_application()
