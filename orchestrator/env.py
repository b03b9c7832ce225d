"""The environment of the process, read and typed in this one place.

Every variable `X` may be given as `X_FILE`, the path of a file that holds the value (Docker and Kubernetes
secrets). Without DATABASE_URL the process belongs to an embedded stack: the supervisor hands down what the process may
know, and a process started by hand beside it reads that from the stack's state file.

Before the first value is read, the process is closed to other processes of the same user.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from secrets import token_urlsafe
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from foundation.keyring import is_valid_key
from foundation.limit_bounds import LIMIT_BOUNDS, Number, number
from foundation.samples import sample_in
from foundation.undumpable import close_to_others
from isolane.limits import RunLimits
from orchestrator.cache_url import cache_url
from orchestrator.processes import Process

PROJECT_ROOT = Path(__file__).resolve().parent.parent
# Variables of other programs, whose files are for everybody: a sandbox needs them to check a server's certificate.
_CERTIFICATES = ("CERT_FILE", "CERTS_FILE")
REDIS_SCHEMES = ("redis", "rediss", "unix")
# Of a run whose tenant's quota says nothing else.
DEFAULT_LIMITS = RunLimits(
    cpu=1,
    ram_mb=512,
    processes=64,
    disk_mb=100,
    open_files=256,
    output_kb=256,
    connections=64,
    network_mb=4096,
    idle_seconds=1800,
)


@dataclass(frozen=True, kw_only=True)
class Env:
    """The operator's settings."""

    embedded: bool
    database_url: str
    database_owner_url: str
    database_worker_url: str
    redis_url: str
    cache_url: str
    secret_key: str
    encryption_keys: tuple[str, ...]
    base_host: str
    allowed_hosts: tuple[str, ...]
    behind_tls: bool
    trusted_proxies: tuple[str, ...]
    flower_user: str
    flower_password: str
    worker_concurrency: int
    worker_capacity: int
    idle_runners_mb: int | None
    catalogue_patience_minutes: int
    run_limits: RunLimits
    node_packages: tuple[str, ...]
    task_packages: tuple[str, ...]
    node_paths: tuple[str, ...]
    resource_networks: tuple[str, ...]
    own_addresses: tuple[tuple[str, int], ...]
    secrets_dir: str
    database_pool_size: int
    web_connections_per_address: int
    log_level: str
    ready_file: str


@dataclass(frozen=True, kw_only=True)
class FlowerEnv:
    """Flower's settings; those of the platform are not read."""

    redis_url: str
    user: str
    password: str
    trusted_proxies: tuple[str, ...]
    ready_file: str


def home(environ: Mapping[str, str]) -> Path:
    """Return the directory of the embedded stack."""
    return Path(environ.get("ISOLANE_HOME", PROJECT_ROOT / ".isolane"))


def private_paths(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the files and folders of the platform that no sandbox may show, wherever they are."""
    named = [
        value
        for name, value in sorted(environ.items())
        if name.endswith("_FILE") and not name.endswith(_CERTIFICATES)
    ]
    paths = [str(home(environ)), environ.get("ISOLANE_SECRETS_DIR", ""), *named]
    return tuple(Path(path).absolute() for path in paths if path)


def variable(environ: Mapping[str, str], name: str) -> str:
    """Return one variable, or the content of the file that NAME_FILE points to; empty if neither is set."""
    return _Reader(environ).text(name, "")


def read(environ: Mapping[str, str] | None = None) -> Env:
    """Read and check the environment; a missing or wrong value raises with the variable's name."""
    reader = _Reader(_with_embedded_stack(os.environ if environ is None else environ))
    embedded = reader.flag("ISOLANE_EMBEDDED", default=not reader.text("DATABASE_URL", ""))
    broker = redis_url(reader.text("REDIS_URL", ""))
    database = postgres_url("DATABASE_URL", reader.required("DATABASE_URL", embedded=embedded))
    concurrency = reader.integer("ISOLANE_WORKER_CONCURRENCY", 6, least=2)
    env = Env(
        embedded=embedded,
        database_url=database,
        database_owner_url=postgres_url(
            "DATABASE_OWNER_URL", reader.text("DATABASE_OWNER_URL", "")
        ),
        database_worker_url=worker_url(reader.text("DATABASE_WORKER_URL", ""), web=database),
        redis_url=broker,
        cache_url=cache_url(reader.text("ISOLANE_CACHE_URL", ""), broker=broker),
        # Without a platform no signature is ever checked.
        secret_key=reader.text("SECRET_KEY", "" if database else token_urlsafe(50)),
        encryption_keys=_keys(reader.text("ENCRYPTION_KEYS", "")),
        base_host=reader.required("BASE_HOST", embedded=embedded, default="localhost"),
        allowed_hosts=reader.words("ALLOWED_HOSTS", ()),
        behind_tls=reader.flag("ISOLANE_BEHIND_TLS", default=not embedded),
        trusted_proxies=_networks(reader, "ISOLANE_TRUSTED_PROXIES"),
        flower_user=reader.text("FLOWER_USER", "admin"),
        flower_password=reader.text("FLOWER_PASSWORD", ""),
        worker_concurrency=concurrency,
        # A placed run always finds a thread, and so do its duplicates when the worker is full.
        worker_capacity=reader.integer("ISOLANE_WORKER_CAPACITY", concurrency - 2 or 1, least=1),
        idle_runners_mb=reader.integer_or_none("ISOLANE_IDLE_RUNNERS_MB", least=0),
        catalogue_patience_minutes=reader.integer(
            "ISOLANE_CATALOGUE_PATIENCE_MINUTES", 60, least=1
        ),
        run_limits=_limits(reader),
        node_packages=reader.words("ISOLANE_NODE_PACKAGES", ()),
        task_packages=reader.words("ISOLANE_TASK_PACKAGES", ()),
        node_paths=reader.paths("ISOLANE_NODE_PATHS"),
        resource_networks=_networks(reader, "ISOLANE_RESOURCE_NETWORKS"),
        own_addresses=tuple(map(_host_and_port, reader.words("ISOLANE_OWN_ADDRESSES", ()))),
        secrets_dir=_absolute("ISOLANE_SECRETS_DIR", reader.text("ISOLANE_SECRETS_DIR", "")),
        database_pool_size=reader.integer("DATABASE_POOL_SIZE", 0, least=0),
        web_connections_per_address=reader.integer(
            "ISOLANE_WEB_CONNECTIONS_PER_ADDRESS", 0, least=0
        ),
        log_level=reader.text("ISOLANE_LOG_LEVEL", "INFO").upper(),
        ready_file=reader.text("ISOLANE_READY_FILE", ""),
    )
    if env.worker_capacity >= env.worker_concurrency:
        raise ImproperlyConfigured(
            f"ISOLANE_WORKER_CAPACITY ({env.worker_capacity}) must be smaller than "
            f"ISOLANE_WORKER_CONCURRENCY ({env.worker_concurrency})."
        )
    return env


def read_limits(environ: Mapping[str, str]) -> RunLimits:
    """Read the limits of a run, for a command without a platform."""
    return _limits(_Reader(environ))


def read_flower(environ: Mapping[str, str]) -> FlowerEnv:
    """Read Flower's settings."""
    reader = _Reader(_with_embedded_stack(environ))
    return FlowerEnv(
        redis_url=redis_url(reader.text("REDIS_URL", "")),
        user=reader.text("FLOWER_USER", "admin"),
        password=reader.text("FLOWER_PASSWORD", ""),
        trusted_proxies=_networks(reader, "ISOLANE_TRUSTED_PROXIES"),
        ready_file=reader.text("ISOLANE_READY_FILE", ""),
    )


def require(process: Process, environ: Mapping[str, str] | None = None) -> None:
    """Refuse to go on without what this kind of process needs; without a database there is no platform to check."""
    reader = _Reader(_with_embedded_stack(os.environ if environ is None else environ))
    if reader.text("DATABASE_URL", ""):
        for name in process.needs:
            reader.required(name, embedded=False)


def _with_embedded_stack(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Add the environment of a running embedded stack, unless servers are named or it started this process."""
    if environ.get("DATABASE_URL") or environ.get("DATABASE_URL_FILE"):
        return environ
    if environ.get("ISOLANE_EMBEDDED"):
        return environ
    try:
        state = json.loads((home(environ) / "state.json").read_text())
    except (OSError, ValueError):
        return environ
    given = {name: value for name, value in environ.items() if value}  # empty counts as unset
    return {**state.get("environment", {}), **given}


class _Reader:
    def __init__(self, environ: Mapping[str, str]) -> None:
        close_to_others()
        self._environ = environ

    def text(self, name: str, default: str) -> str:
        value = self._environ.get(name, "").strip() or self._of_file(name)
        if sample := sample_in(name, value):
            raise ImproperlyConfigured(
                f"{name} has the published sample value {sample!r}, which everybody knows; set one of your own."
            )
        return value or default

    def _of_file(self, name: str) -> str:
        path = self._environ.get(f"{name}_FILE")
        if not path:
            return ""
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise ImproperlyConfigured(
                f"{name}_FILE: cannot read {path!r}: {error.strerror}."
            ) from None

    def required(self, name: str, *, embedded: bool, default: str = "") -> str:
        value = self.text(name, default if embedded else "")
        if not value and not embedded:
            raise ImproperlyConfigured(
                f"{name} is not set. Set {name} or {name}_FILE, "
                "or leave DATABASE_URL out to use the embedded stack."
            )
        return value

    def words(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.text(name, "").replace(",", " ").split()) or default

    def paths(self, name: str) -> tuple[str, ...]:
        """Split as PATH is split: a directory's name may hold blanks and commas."""
        return tuple(path for path in self.text(name, "").split(os.pathsep) if path)

    def flag(self, name: str, *, default: bool) -> bool:
        value = self.text(name, "").lower()
        if value not in {"", "1", "0", "true", "false", "yes", "no"}:
            raise ImproperlyConfigured(f"{name} is {value!r}; use 1 or 0.")
        return value in {"1", "true", "yes"} if value else default

    def integer(self, name: str, default: int, *, least: int) -> int:
        value = self.text(name, str(default))
        if not value.isdecimal() or int(value) < least:
            raise ImproperlyConfigured(
                f"{name} is {value!r}; use a whole number from {least} upward."
            )
        return int(value)

    def integer_or_none(self, name: str, *, least: int) -> int | None:
        return self.integer(name, least, least=least) if self.text(name, "") else None

    def limit(self, name: str, limit: str) -> Number:
        bounds = LIMIT_BOUNDS[limit]
        text = self.text(name, str(getattr(DEFAULT_LIMITS, limit)))
        value = number(text)
        if value is None or not bounds.allow(value):
            raise ImproperlyConfigured(f"{name} is {text!r}; use {bounds}.")
        return value


def _limits(reader: _Reader) -> RunLimits:
    read: dict[str, Any] = {
        limit: reader.limit(f"ISOLANE_LIMIT_{limit.upper()}", limit) for limit in LIMIT_BOUNDS
    }
    return RunLimits(**read)


def postgres_url(name: str, value: str) -> str:
    """Return the value if it is an address."""
    try:
        conninfo_to_dict(value)
    except ProgrammingError:  # its text may hold the password
        raise ImproperlyConfigured(
            f"{name} is not a PostgreSQL address; use postgresql://user:password@host:port/database."
        ) from None
    return value


def worker_url(value: str, *, web: str) -> str:
    """Return the value if it names the same database as web's address."""
    worker = conninfo_to_dict(postgres_url("DATABASE_WORKER_URL", value))
    if value and worker.get("dbname") != conninfo_to_dict(web).get("dbname"):
        raise ImproperlyConfigured(
            "DATABASE_WORKER_URL names another database than DATABASE_URL; only user and password may differ."
        )
    return value


def _keys(value: str) -> tuple[str, ...]:
    keys = tuple(value.replace(",", " ").split())
    for position, key in enumerate(keys, start=1):
        if not is_valid_key(key):
            raise ImproperlyConfigured(
                f"ENCRYPTION_KEYS: key {position} is not 32 bytes in URL-safe base64; "
                "make one with 'isolane keys generate'."
            )
    return keys


def _networks(reader: _Reader, name: str) -> tuple[str, ...]:
    try:
        return tuple(str(ip_network(word)) for word in reader.words(name, ()))
    except ValueError as error:  # names the word and the reason
        raise ImproperlyConfigured(
            f"{name}: {error}; use networks such as 10.1.0.0/16 or fd00::/8."
        ) from None


def _host_and_port(word: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{word}")
        if parts.hostname and parts.port and parts.netloc == word and "@" not in word:
            return parts.hostname, parts.port
    except ValueError:
        pass
    raise ImproperlyConfigured(
        f"ISOLANE_OWN_ADDRESSES: {word!r} is not a host with a port; use words such as flower.internal:5555."
    )


def _absolute(name: str, value: str) -> str:
    if value and not Path(value).is_absolute():
        raise ImproperlyConfigured(f"{name} is {value!r}; use an absolute path.")
    return value


def redis_url(value: str) -> str:
    """Return the address in one form: redis://, rediss:// or unix://[:password@]/path."""
    url = value.replace("redis+socket://", "unix://", 1)
    scheme = url.split("://", 1)[0]
    if url and scheme not in REDIS_SCHEMES:
        raise ImproperlyConfigured(
            f"REDIS_URL starts with {scheme!r}; use one of {', '.join(REDIS_SCHEMES)}."
        )
    return url


def broker_url(redis_url: str) -> str:
    """Return the same address in kombu's words: redis+socket for a Unix socket."""
    return redis_url.replace("unix://", "redis+socket://", 1)
