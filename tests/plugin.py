"""Points the settings at servers of the tests' own, before Django reads them; started when a test needs them."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from orchestrator.broker_users import WORKER
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.stack import EmbeddedServers

HOME = Path(tempfile.mkdtemp(prefix="isolane-test-"))
PATHS = EmbeddedPaths(HOME / "home")
SERVERS = EmbeddedServers(
    PATHS, durable=False, postgres_settings={"shared_preload_libraries": "pg_stat_statements"}
)
PATHS.prepare()
ROOT = Path(__file__).parent.parent

for name in list(os.environ):
    if name.startswith(("DATABASE_", "REDIS_", "ISOLANE_", "FLOWER_", "CELERY_")):
        del os.environ[name]
os.environ.update(
    ISOLANE_EMBEDDED="1",
    ISOLANE_HOME=str(HOME / "none"),
    DATABASE_URL=SERVERS.login_url,
    DATABASE_OWNER_URL=SERVERS.owner_url,
    DATABASE_WORKER_URL=SERVERS.worker_url,
    REDIS_URL=SERVERS.redis_url_of(WORKER),
    ISOLANE_CACHE_URL=SERVERS.cache_url,
    ISOLANE_RESOURCE_NETWORKS="127.0.0.0/8",
    SECRET_KEY="only-for-tests-" + "x" * 40,
    ENCRYPTION_KEYS=SERVERS.secrets.encryption_key,
    BASE_HOST="isolane.test",
    DATABASE_POOL_SIZE="10",
    ISOLANE_LOG_LEVEL="WARNING",
    ISOLANE_NODE_PACKAGES="demo_shop tests.nodes",
    ISOLANE_NODE_PATHS=os.pathsep.join([str(ROOT / "examples"), str(ROOT)]),
)


def _clean() -> None:
    PATHS.remove()
    shutil.rmtree(HOME, ignore_errors=True)


atexit.register(_clean)
