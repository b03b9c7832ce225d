"""Every system check has an id of its own, is registered, is documented, and `make lint` runs it."""

import re
from collections import Counter
from pathlib import Path

from django.core.checks.registry import registry

from orchestrator.lint import CHECKS

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("foundation", "tenants", "resources", "executions", "orchestrator")
ID = re.compile(r'"((?:isolane|tenants)\.[EW]\d{3})"')
ROW = re.compile(r"^\| `((?:isolane|tenants)\.[EW]\d{3})` \|", re.MULTILINE)


def defined() -> Counter[str]:
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return Counter(found for path in files for found in ID.findall(path.read_text("utf-8")))


def test_each_id_is_defined_once() -> None:
    assert len(defined()) > 10
    assert set(defined().values()) == {1}


def test_the_table_lists_each_id_once() -> None:
    listed = ROW.findall((ROOT / "docs" / "configuration.md").read_text("utf-8"))
    assert sorted(listed) == sorted(defined())


def test_the_checks_of_every_app_are_registered() -> None:
    modules = {check.__module__ for check in registry.get_checks(include_deployment_checks=True)}
    assert modules >= {
        "foundation.checks",
        "tenants.checks",
        "tenants.logins.checks",
        "resources.checks",
        "executions.worker.checks",
    }


def test_lint_runs_them_with_production_settings() -> None:
    assert ("check", "--deploy", "--fail-level", "WARNING") in CHECKS
