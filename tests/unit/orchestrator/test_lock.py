"""deploy/requirements.lock: what production needs, all of it, in the versions of constraints.txt, each with a hash."""

import re
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from orchestrator.lock import lock_of

ROOT = Path(__file__).parents[3]
LINE = re.compile(r"^([a-z0-9._-]+)==(\S+) \\\n    --hash=sha256:[0-9a-f]{64}$", re.M)


def locked() -> dict[str, str]:
    text = (ROOT / "deploy" / "requirements.lock").read_text()
    found: dict[str, str] = {
        canonicalize_name(name): version for name, version in LINE.findall(text)
    }
    assert len(found) * 2 + 2 == text.count(
        "\n"
    )  # two lines of comment, two for each, and nothing else
    return found


def test_the_versions_are_those_of_the_constraints() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if "==" in line]
    constraints = {canonicalize_name(name): version for name, version in pairs}
    assert locked().items() <= constraints.items()


def test_it_has_all_that_production_needs_and_nothing_else() -> None:
    """Walked from the project's own requirements, in this environment."""
    needed: set[str] = set()
    waiting = [("isolane", frozenset[str]())]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        needed.add(name)
        for text in distribution(name).requires or ():
            one = Requirement(text)
            marker = one.marker
            if marker is None or any(marker.evaluate({"extra": it}) for it in ("", *extras)):
                waiting.append((canonicalize_name(one.name), frozenset(one.extras)))
    assert locked().keys() == needed - {"isolane"}


def test_the_project_itself_is_not_in_it() -> None:
    archive = {"archive_info": {"hashes": {"sha256": "0" * 64}}}
    installs = [
        {"metadata": {"name": "Zeta", "version": "2"}, "download_info": archive},
        {"metadata": {"name": "isolane", "version": "1"}, "download_info": {"dir_info": {}}},
        {"metadata": {"name": "alpha", "version": "1"}, "download_info": archive},
    ]
    assert [found[0] for found in LINE.findall(lock_of(installs))] == ["alpha", "zeta"]
