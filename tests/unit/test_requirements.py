"""tests.requirements: a test that cannot be made is skipped, and fails where it is required."""

import pytest

from tests.plugin import ROOT
from tests.requirements import VARIABLE, give_up


def test_it_is_skipped_unless_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Landlock"):
        give_up("no Landlock")
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(pytest.fail.Exception, match="and no Landlock"):
        give_up("no Landlock")


def test_the_check_of_changes_requires_it() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert f"\nexport {VARIABLE}=1\n" in script
    assert script.index(VARIABLE) < script.index("make test")
