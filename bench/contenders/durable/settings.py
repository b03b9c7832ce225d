"""Minimal Django settings: one app, one database, persistent connections."""

import os

from psycopg.conninfo import conninfo_to_dict

_INFO = conninfo_to_dict(os.environ.get("BENCH_DATABASE_URL", ""))

SECRET_KEY = "only-for-the-benchmark"  # noqa: S105 - nothing is signed
USE_TZ = True
INSTALLED_APPS = ["bench.contenders.durable"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _INFO.get("dbname", ""),
        "USER": _INFO.get("user", ""),
        "PASSWORD": _INFO.get("password", ""),
        "HOST": _INFO.get("host", ""),
        "PORT": _INFO.get("port", ""),
        "CONN_MAX_AGE": None,
    }
}
