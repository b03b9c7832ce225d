"""The Celery application; `celery -A orchestrator worker` starts a worker with the project's defaults.

Timing: import-time, definitions only; Django is set up when Celery imports its tasks.
Model: sync.
Guarantee: web and workers share one configuration.
Failure: bubble; a worker that cannot load its tasks does not start.
"""

import os
import sys
from typing import Any

import django
from celery.signals import celeryd_init, import_modules, setup_logging
from django.core.exceptions import ImproperlyConfigured

from orchestrator import env
from orchestrator.descriptors import raise_descriptors
from orchestrator.lane_app import lane_app
from orchestrator.processes import WORKER

EXIT_UNAVAILABLE = 2
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.settings")


app = lane_app(is_current=True)
app.config_from_object("orchestrator.celery_settings:SETTINGS")


@import_modules.connect
def _load_django(**_: Any) -> None:
    django.setup()
    # Models may be imported only after setup.
    from executions.worker import lifecycle, signals, tasks  # noqa: F401, PLC0415 - likewise

    lifecycle.connect()
    signals.connect()


@celeryd_init.connect
def _refuse_without_credentials(**_: Any) -> None:
    """Exit without the needed credentials; Celery swallows any other exception of a receiver."""
    try:
        env.require(WORKER)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(EXIT_UNAVAILABLE)


@celeryd_init.connect
def _raise_descriptors(**_: Any) -> None:
    """Let a worker keep many idle runners: each has four descriptors."""
    raise_descriptors()


@setup_logging.connect
def _keep_django_logging(**_: Any) -> None:
    """Keep Django's LOGGING for workers."""
