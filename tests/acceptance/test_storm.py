"""A short storm trial: runs misbehave in every way while a worker is killed, and nothing is left behind."""

import signal
import socket
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
import redis
from django.utils.timezone import now

from executions.models import ResourceRecord
from resources.ledger.models import IssuedCredential
from resources.runtimes import runner_processes
from resources.runtimes.base import Availability
from resources.runtimes.folder import PREFIX
from resources.runtimes.sweeping import FolderSweep
from tenants.scope import TenantRef, tenant_scope
from tests.customer import Customer
from tests.factories import distrust, make_boot, make_placed, make_tenant, set_quota
from tests.plugin import SERVERS
from tests.recorder import Recorder
from tests.waiting import wait_for
from trials.storm.orphans import (
    Remotes,
    executions_in,
    in_the_ledger,
    on_the_machine,
    unrecorded,
)
from trials.storm.scenario import Size, run_storm

RUNS, SEED, WORKERS = 48, 20, 2


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
    process_level: Availability,
) -> None:
    """Two thirds of the runs have the level `process`, where the machine can give it."""
    monkeypatch.setenv("ISOLANE_NODE_PACKAGES", "tests.acceptance.storm_nodes")
    trusted, untrusted = [acme, globex, make_tenant("initech", trusted=True)], []
    if process_level.ok:
        trusted, untrusted = trusted[:1], trusted[1:]
    for tenant in untrusted:
        distrust(tenant)
    for tenant in (*trusted, *untrusted):
        set_quota(tenant, RUNS)
    remotes = Remotes(customer=customer, recorder=recorder, cache=run_cache)
    size = Size(runs=RUNS, seed=SEED, workers=WORKERS, freeze=False)
    lines: list[str] = []
    result = run_storm(trusted, untrusted, remotes, tmp_path, size, progress=lines.append)
    assert result.left == []
    sandboxed = 2 * RUNS // 3 if process_level.ok else 0
    assert result.levels == Counter(shared=RUNS - sandboxed, process=sandboxed)
    assert any(line.startswith("kill -9") for line in lines)
    # The search does find things: there were many at the remotes meanwhile, and many ended badly.
    assert result.remote_state.most > WORKERS
    assert len(result.behaviours) > 10
    kinds = {name.rpartition(" ")[0] for name in result.records}
    assert kinds == {"cache", "cache.keys", "cache.user", "database", "database.role", "http_api"}
    assert {"database disposed", "database killed"} <= result.records.keys()


def test_the_search_finds_what_is_left(
    acme: TenantRef,
    globex: TenantRef,
    customer: Customer,
    recorder: Recorder,
    run_cache: "redis.Redis",
    tmp_path: Path,
) -> None:
    remotes = Remotes(customer=customer, recorder=recorder, cache=run_cache)
    assert [remotes.left(), in_the_ledger([acme, globex]), on_the_machine(tmp_path, [])] == [
        [],
        [],
        [],
    ]
    execution_id = uuid4()
    role, user = f"iso_{execution_id.hex}_1_storm", f"exec:{execution_id}:1:scratch"
    url = SERVERS.cache_url
    with (
        customer.connect() as superuser,
        customer.connect(customer.reader),
        redis.Redis.from_url(url, client_name=f"exec_{execution_id}/1/acme") as cache,
        socket.create_connection((recorder.host, recorder.port)),
        subprocess.Popen(["sleep", "60"], env={"HOME": str(tmp_path / "runner")}) as left_running,
    ):
        superuser.execute(f'CREATE ROLE "{role}"')
        run_cache.acl_setuser(user)
        cache.set(f"{user}:k", "v")
        _record(acme, user)
        wait_for(lambda: recorder.open_ports, "the recorder's connection")
        try:
            found = "\n".join(
                remotes.left() + in_the_ledger([acme, globex]) + on_the_machine(tmp_path, [])
            )
        finally:
            superuser.execute(f'DROP ROLE "{role}"')
            left_running.kill()
    for line in (
        f"role {role}", "of shop_reader", f"cache user {user}", f"cache key {user}:k", f"'exec_{execution_id}/1/acme'",
        "HTTP connection", f"record {user} open", f"issued cache.user {user}", "['sleep', '60']",
    ):  # fmt: skip
        assert line in found, found
    assert executions_in([f"role {role}"]) == {execution_id: f"role {role}"}
    assert unrecorded(remotes.created_roles() & {role}, [acme, globex]) == [
        f"role {role} is in no ledger"
    ]
    assert unrecorded({user}, [acme, globex]) == [f"role {user} is in no ledger"]


def _record(tenant: TenantRef, remote_id: str) -> None:
    """Make a run with a credential that was not revoked."""
    boot = make_boot()
    run_id = make_placed(tenant, boot).execution_id
    with tenant_scope(tenant):
        ResourceRecord.objects.create(
            execution_id=run_id, epoch=1, resource_id=remote_id, type="cache.user", opened_at=now()
        )
        IssuedCredential.objects.create(
            tenant_id=tenant.id, execution_id=run_id, epoch=1, resource_type="cache", kind="cache.user",
            remote_id=remote_id, data=b"", issued_at=now(), sweep_at=now(),
        )  # fmt: skip


def test_a_runner_that_a_killed_worker_left_stopped_is_ended_by_the_next_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"{PREFIX}left"
    folder.mkdir()
    with subprocess.Popen(["sleep", "60"], env={"HOME": str(folder)}) as runner:
        runner.send_signal(signal.SIGSTOP)
        FolderSweep().turn()
        assert runner.wait(10) == -signal.SIGKILL
    assert not folder.exists()


def test_a_process_that_a_stray_starts_during_the_search_is_ended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first search finds a process that ends a moment later; its child exists only then."""
    search = runner_processes._strays
    started: list[subprocess.Popen[bytes]] = []

    def strays(home: Path) -> Iterator[psutil.Process]:
        if started:
            yield from search(home)
        else:
            started.append(subprocess.Popen(["sleep", "60"], env={"HOME": str(home)}))

    monkeypatch.setattr(runner_processes, "_strays", strays)
    runner_processes.end_strays(tmp_path)
    assert started[0].wait(10) == -signal.SIGKILL
