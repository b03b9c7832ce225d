"""A short storm: runs of two tenants that misbehave in every way while a worker is killed, and nothing is left."""

from pathlib import Path

import pytest
import redis

from bench.storm.leftovers import FarSides
from bench.storm.storm import Size, raise_storm
from tenants.scope import TenantRef
from tests.customer import Customer
from tests.factories import set_quota
from tests.recorder import Recorder

RUNS, SEED, WORKERS = 40, 20, 2


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("broker")
def test_nothing_is_left_of_runs_that_end_in_every_way(
    acme: TenantRef,
    globex: TenantRef,
    customer: Customer,
    recorder: Recorder,
    run_cache: "redis.Redis",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ISOLANE_NODE_PACKAGES", "tests.acceptance.storm_nodes")
    for tenant in (acme, globex):
        set_quota(tenant, RUNS)
    far = FarSides(customer=customer, recorder=recorder, cache=run_cache)
    size = Size(runs=RUNS, seed=SEED, workers=WORKERS, freeze=False)
    said: list[str] = []
    aftermath = raise_storm([acme, globex], far, tmp_path, size, say=said.append)
    assert aftermath.left == []
    assert aftermath.runs.total() == RUNS
    assert any(line.startswith("kill -9") for line in said)
    # The looks can see: while it went on there was much at the far sides, and much of it ended badly.
    assert aftermath.seen.most > WORKERS
    assert len(aftermath.moods) > 10
    kinds = {name.rpartition(" ")[0] for name in aftermath.records}
    assert kinds == {"cache", "cache.keys", "cache.user", "database", "database.role", "http_api"}
    assert {"database disposed", "database killed"} <= aftermath.records.keys()
