"""The description of the machine."""

from pathlib import Path

import pytest

from bench.machine import describe, is_busy


def test_it_names_cores_versions_and_where_data_lies(tmp_path: Path) -> None:
    found = describe(load_before=0.1, data=tmp_path, postgres="18.1", valkey="9.0")
    assert found["cores"] >= 1
    assert found["file_system"] != "unknown"
    assert (found["load_before"], found["postgres"], found["valkey"]) == (0.1, "18.1", "9.0")
    assert found["celery"].startswith("5.")


@pytest.mark.parametrize(("load", "busy"), [(0.1, False), (0.6, False), (0.7, True)])
def test_a_machine_is_busy_by_its_cores(load: float, *, busy: bool) -> None:
    assert is_busy({"cores": 2, "load_before": load}) is busy
