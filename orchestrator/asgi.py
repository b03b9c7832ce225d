"""Web as an ASGI application. `isolane web` serves it, with the limits that an application cannot enforce."""

import os

import django
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.settings")
os.environ.setdefault("DATABASE_POOL_SIZE", "20")
# Also the Celery application, so that web can publish.
from orchestrator import env
from orchestrator.celery import app as celery_app
from orchestrator.processes import WEB
from orchestrator.web.body_limit import limit_body
from orchestrator.web.django_handler import ThreadedHandler
from orchestrator.web.limits import requests_at_work

env.require(WEB)
celery_app.set_default()
django.setup(set_prefix=False)
from tenants.logins.early import EarlyRefusals  # noqa: E402 - needs Django to be set up

_django = ThreadedHandler(threads=requests_at_work(settings.ENV.database_pool_size))
_early = EarlyRefusals(_django)
refusal = _early.refusal
application = limit_body(_early, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
