"""The settings with the environment of production."""

import json
import subprocess
import sys
from typing import Any

from orchestrator.lint import production_environment
from orchestrator.settings import BASE_DIR

ASK = """
import json, django
django.setup()
from django.conf import settings
from django.core.checks import run_checks
from drf_spectacular.generators import SchemaGenerator
schemes = SchemaGenerator().get_schema(public=True)["components"]["securitySchemes"]
print(json.dumps({
    "session": settings.SESSION_COOKIE_NAME, "csrf": settings.CSRF_COOKIE_NAME,
    "documented": schemes["session"]["name"],
    "secure": settings.SESSION_COOKIE_SECURE and settings.CSRF_COOKIE_SECURE, "path": settings.SESSION_COOKIE_PATH,
    "domain": settings.SESSION_COOKIE_DOMAIN, "warnings": [found.id for found in run_checks(tags=["security"])],
}))
"""


def production(**changes: str) -> dict[str, Any]:
    environment = production_environment() | {"DJANGO_SETTINGS_MODULE": "orchestrator.settings"}
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        env=environment | changes,
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_cookies_are_of_one_host_over_tls() -> None:
    found = production(ISOLANE_TRUSTED_PROXIES="")
    assert (found["session"], found["csrf"]) == ("__Host-sessionid", "__Host-csrftoken")
    assert found["documented"] == found["session"]
    # What the prefix demands, or browsers do not take them.
    assert (found["secure"], found["path"], found["domain"]) == (True, "/", None)
    assert found["warnings"] == ["tenants.W001"]
