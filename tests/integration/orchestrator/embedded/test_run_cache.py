"""The run cache: on loopback, behind a password, in memory, and full rather than forgetful."""

from typing import Any

import psutil
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from orchestrator.embedded.stack import EmbeddedServers
from orchestrator.embedded.supervisor import Supervisor
from tests.integration.orchestrator.embedded.waiting import wait_until

NO_RETRY = Retry(NoBackoff(), 0)
RUN = {
    "enabled": True,
    "keys": ["exec:1:1:*"],
    "commands": ["+get", "+set", "+ping"],
    "reset": True,
    "reset_channels": True,
}


@pytest.fixture
def running(servers: EmbeddedServers, supervisor: Supervisor) -> EmbeddedServers:
    servers.paths.prepare()
    servers.run_cache.prepare()
    supervisor.start(servers.run_cache.child())
    return servers


def admin(servers: EmbeddedServers) -> "redis.Redis":
    return redis.Redis.from_url(servers.cache_url, decode_responses=True)


def stranger_to(servers: EmbeddedServers, **login: Any) -> Any:
    """Somebody who knows the address; raw commands of redis-py have no types."""
    host, port = servers.run_cache.address.split(":")
    return redis.Redis(host=host, port=int(port), retry=NO_RETRY, **login)


def test_it_is_a_server_of_its_own_on_loopback(
    running: EmbeddedServers, supervisor: Supervisor
) -> None:
    process = psutil.Process(supervisor.pids["run-cache"])
    listening = [one.laddr for one in process.net_connections("inet") if one.status == "LISTEN"]
    host, port = running.run_cache.address.split(":")
    assert [(one.ip, one.port) for one in listening] == [("127.0.0.1", int(port))]
    assert host == "127.0.0.1"
    password = running.secrets.run_cache_password
    assert password not in " ".join(process.cmdline())
    assert password not in running.run_cache.address
    assert password != running.secrets.valkey_password


def test_a_stranger_can_do_nothing(running: EmbeddedServers) -> None:
    with stranger_to(running) as stranger:
        for command in ("PING", "DBSIZE", "ACL WHOAMI", "CONFIG GET maxmemory"):
            with pytest.raises(redis.AuthenticationError):
                stranger.execute_command(*command.split())


def test_the_administrator_makes_users_who_have_only_what_they_are_given(
    running: EmbeddedServers,
) -> None:
    with admin(running) as client:
        client.acl_setuser("run", passwords=["+hunter2hunter2"], **RUN)
        client.set("exec:2:1:theirs", "1")
    with stranger_to(running, username="run", password="hunter2hunter2") as run:
        run.set("exec:1:1:mine", "1")
        refused = ("GET exec:2:1:theirs", "SCAN 0", "ACL LIST", "CONFIG GET *", "FLUSHALL", "SAVE")
        for command in refused:
            with pytest.raises(redis.exceptions.NoPermissionError):
                run.execute_command(*command.split())


def test_nothing_is_on_disk_and_a_full_cache_says_so(running: EmbeddedServers) -> None:
    with admin(running) as client:
        found = client.config_get("maxmemory*", "save", "appendonly")
        assert found["maxmemory"] == str(128 * 1024 * 1024)
        assert (found["save"], found["appendonly"]) == ("", "no")
        client.set("exec:1:1:kept", "1", ex=3600)
        client.config_set("maxmemory", "1")
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            client.set("exec:2:1:more", "1", ex=3600)
        assert client.get("exec:1:1:kept") == "1"
    directory = running.paths.run_cache
    assert [path.name for path in directory.iterdir()] == ["valkey.conf"]
    assert directory.stat().st_mode & 0o077 == 0


def test_a_crashed_one_comes_back_at_the_same_address_without_users(
    running: EmbeddedServers, supervisor: Supervisor
) -> None:
    with admin(running) as client:
        client.acl_setuser("run", passwords=["+hunter2hunter2"], **RUN)
        client.set("exec:1:1:mine", "1")
    address, crashed = running.run_cache.address, supervisor.pids["run-cache"]
    psutil.Process(crashed).kill()

    def restarted() -> bool:
        supervisor.poll()
        return supervisor.pids.get("run-cache", crashed) != crashed and running.run_cache.is_ready()

    wait_until(restarted)
    assert running.run_cache.address == address
    with admin(running) as client:
        assert client.acl_users() == ["default"]
        assert client.dbsize() == 0
    with stranger_to(running, username="run", password="hunter2hunter2") as run:
        with pytest.raises(redis.AuthenticationError):
            run.ping()
