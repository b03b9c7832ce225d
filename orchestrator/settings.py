"""Django and Celery settings; every value that an operator decides comes from orchestrator.env."""

import logging
import os
from datetime import timedelta
from typing import Any

import django_stubs_ext
from psycopg.conninfo import conninfo_to_dict

from orchestrator import env as environment
from orchestrator.broker_options import broker_options

# Lets annotations such as ModelAdmin[Tenant] stand in running code.
django_stubs_ext.monkeypatch()
ENV = environment.read()

BASE_DIR = environment.PROJECT_ROOT
DEBUG = False
SECRET_KEY = ENV.secret_key
ENCRYPTION_KEYS = ENV.encryption_keys
EMBEDDED = ENV.embedded

# --- Hosts: the base host serves the platform, <anything in the Domain table> serves one tenant.
BASE_HOST = ENV.base_host
ALLOWED_HOSTS = list(ENV.allowed_hosts) or [BASE_HOST, f".{BASE_HOST}"]
if EMBEDDED:
    ALLOWED_HOSTS += ["127.0.0.1", "[::1]"]
BEHIND_TLS = ENV.behind_tls
TRUSTED_PROXIES = ENV.trusted_proxies
ROOT_URLCONF = "orchestrator.urls"
ASGI_APPLICATION = "orchestrator.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
USE_I18N = False

# --- Apps: the two lists are disjoint, so that no table of a tenant can be found in public by mistake.
SHARED_APPS = [
    "tenants",
    "executions.placement",
    "resources.ledger",
    "django.contrib.admin",  # before django_tenants, whose admin pages have inline styles
    "django_tenants",
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]
TENANT_APPS = ["executions", "resources"]
INSTALLED_APPS = [*SHARED_APPS, *TENANT_APPS]
TENANT_MODEL = "tenants.Tenant"
TENANT_DOMAIN_MODEL = "tenants.Domain"
AUTH_USER_MODEL = "tenants.User"
TENANT_SYNC_ROUTER = "tenants.routers.SchemaRouter"
DATABASE_ROUTERS = [TENANT_SYNC_ROUTER]
TENANT_LIMIT_SET_CALLS = True

MIDDLEWARE = [
    "foundation.request_ids.RequestIdMiddleware",
    "foundation.browser_rules.BrowserRulesMiddleware",
    "foundation.health.HealthMiddleware",
    "tenants.middleware.ConnectionMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "tenants.middleware.ScopeMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]


# --- Databases: the same database through two roles. Tests and all processes run as the login role;
# migrations and provisioning alone use the owner.
_PLANNING = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off"
# Detects a server that vanished: sent data is not acknowledged for 10 s (in ms) or, during a wait for an answer,
# probes are not. A connection over a Unix socket cannot be half-open.
_HALF_OPEN = {
    "tcp_user_timeout": 10_000,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
}


# A process that is stopped inside a transaction must not keep its locks, above all admission's.
_STOPPED = "-c idle_in_transaction_session_timeout=10s"


def _database(url: str, settings: str = _PLANNING, **extra: Any) -> dict[str, Any]:
    info = conninfo_to_dict(url)
    return {
        "ENGINE": "tenants.postgresql",
        "NAME": info.pop("dbname", "isolane"),
        "USER": info.pop("user", ""),
        "PASSWORD": info.pop("password", ""),
        "HOST": info.pop("host", ""),
        "PORT": str(info.pop("port", "")),
        "OPTIONS": {
            "connect_timeout": 5,
            **_HALF_OPEN,
            # Only tenants.statement repeats its texts; from the third time on they are prepared, with one plan for
            # all values: they look up single rows, and planning takes longer than that. A plan made while a new
            # tenant's tables are empty must not scan them when they have grown.
            "prepare_threshold": 2,
            **info,
            "options": f"{info.get('options', '')} {settings}".strip(),
            **extra,
        },
        "CONN_MAX_AGE": 0,
    }


_POOL = {"min_size": 1, "max_size": ENV.database_pool_size, "timeout": 5}
# Web runs each request in a thread of its own and shares connections. So do a worker's links, log and admission, and
# their connections keep to tenants. Other threads have one each.
DATABASES = {
    "default": _database(
        ENV.database_url,
        f"{_PLANNING} {_STOPPED}",
        **({"pool": _POOL} if ENV.database_pool_size else {}),
    )
}
DATABASES["default"]["KEPT_CONNECTIONS"] = (
    2 * ENV.worker_concurrency
)  # so that a tenant's own is seldom busy
if ENV.database_owner_url:
    DATABASES["owner"] = _database(ENV.database_owner_url)

# --- Sign-in
AUTHENTICATION_BACKENDS = ["tenants.logins.backend.PasswordBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = LOGOUT_REDIRECT_URL = "/"
# For members; sessions of staff are shorter (tenants.logins.sessions).
SESSION_COOKIE_AGE = int(timedelta(days=7).total_seconds())
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BEHIND_TLS
# A browser accepts a cookie with this prefix only over TLS and for this host: no sibling host can set it.
_COOKIE_PREFIX = "__Host-" if BEHIND_TLS else ""
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"{_COOKIE_PREFIX}sessionid", f"{_COOKIE_PREFIX}csrftoken"
SECURE_SSL_REDIRECT = BEHIND_TLS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_TLS else None
SECURE_HSTS_SECONDS = 31_536_000 if BEHIND_TLS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = BEHIND_TLS
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "foundation.problems.csrf_failure"

# --- Static files (admin and API docs) are served by web itself, straight from the packages.
STATIC_URL = "/static/"
WHITENOISE_USE_FINDERS = True

# --- REST
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "tenants.api.authentication.ApiKeyAuthentication",
        "tenants.api.authentication.MemberSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["tenants.api.permissions.HasTenantPermission"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["foundation.parsers.JsonParser"],
    "EXCEPTION_HANDLER": "foundation.problems.exception_handler",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_PAGINATION_CLASS": "foundation.pagination.NewestFirst",
    "PAGE_SIZE": 50,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Isolane",
    "VERSION": "1",
    "DESCRIPTION": "Submit and follow runs. The tenant is that of the host name, or that of the API key.",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "ExecutionState": "executions.states.ExecutionState",
        "StepState": "executions.states.StepState",
    },
}

# --- Celery: ids only, JSON only, nothing kept in the broker. PostgreSQL is the truth; a message is a wake-up, gone
# once received (orchestrator.lane_app.LaneAMQP). No prefetch limit is needed: a worker holds at most one message for
# each run that is placed on it, as many as its capacity.
CELERY_BROKER_URL = environment.broker_url(ENV.redis_url)
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = CELERY_RESULT_SERIALIZER = "json"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_STORE_ERRORS_EVEN_IF_IGNORED = False
# Each event is one more message. Flower, when it runs, asks the workers to send them.
CELERY_TASK_SEND_SENT_EVENT = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = ENV.worker_concurrency
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = True
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # a worker never gives up its broker
CELERY_TASK_PUBLISH_RETRY = False
CELERY_BROKER_TRANSPORT_OPTIONS = broker_options(CELERY_BROKER_URL)
CELERY_TIMEZONE = "UTC"
REDIS_URL = ENV.redis_url

# --- Runs' servers: a cache that is never the broker, and the private networks that their resources may be in.
CACHE_URL = ENV.cache_url
RESOURCE_NETWORKS = ENV.resource_networks
# Addresses of web and Flower, which no resource may use; web also has its host names, unless they mean this machine.
OWN_ADDRESSES = ENV.own_addresses
OWN_DOMAIN = "" if EMBEDDED else BASE_HOST
SECRETS_DIR = ENV.secrets_dir

# --- Runs
WORKER_CAPACITY = ENV.worker_capacity
LEASE_SECONDS = 15  # the order of all clocks of a worker is asserted in executions/worker/clocks.py
CATALOGUE_PATIENCE = timedelta(minutes=ENV.catalogue_patience_minutes)
RUN_LIMITS = ENV.run_limits  # a tenant's quota may say more or less, a blueprint only less
DRAIN_GRACE_SECONDS = 10
_RUNTIME_OPTIONS = {
    "size": ENV.worker_capacity,
    "packages": list(ENV.node_packages),
    "tasks": list(ENV.task_packages),
    "paths": list(ENV.node_paths),
    "hidden": list(environment.private_paths(os.environ)),
}
RUNTIMES = {
    "shared": {
        "BACKEND": "resources.runtimes.shared.SharedBackend",
        "OPTIONS": {**_RUNTIME_OPTIONS, "idle_mb": ENV.idle_runners_mb},
    },
    "process": {
        "BACKEND": "resources.runtimes.process.ProcessBackend",
        "OPTIONS": {**_RUNTIME_OPTIONS, "limits": RUN_LIMITS},
    },
}

# No log line shows thread, process and code position, and finding them costs time for each.
logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
logging._srcfile = None
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "foundation.logs.JsonFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": ENV.log_level},
    "loggers": {
        # The run's own events are better than one line per task and thread.
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        # The error that follows is logged once.
        "psycopg.pool": {"level": "ERROR"},
        # Errors of callers are answered, not logged: any caller could fill the log.
        "django.request": {"level": "ERROR"},
        "django.security.csrf": {"level": "ERROR"},
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        "django.security.RequestDataTooBig": {"level": "CRITICAL"},
        "django.security.TooManyFieldsSent": {"level": "CRITICAL"},
    },
}
