"""The environment is read strictly: a missing or wrong value is named."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from foundation.samples import ENCRYPTION_KEY
from isolane.limits import RunLimits
from orchestrator import env
from orchestrator.processes import PROCESSES, Process

KEY = "a2V5" * 10 + "a2U="
PRODUCTION = {
    "DATABASE_URL": "postgresql://login:pw@db.example.com:5433/shop",
    "DATABASE_OWNER_URL": "postgresql://owner:pw@db.example.com/shop",
    "REDIS_URL": "rediss://:pw@redis.example.com:6380/1",
    "SECRET_KEY": "s" * 50,
    "ENCRYPTION_KEYS": KEY,
    "BASE_HOST": "isolane.example.com",
}


def read(home: Path, **changes: str) -> env.Env:
    return env.read({"ISOLANE_HOME": str(home), **PRODUCTION, **changes})


def test_what_production_names_is_used(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert not found.embedded
    assert found.behind_tls
    assert found.database_url == PRODUCTION["DATABASE_URL"]
    assert found.database_owner_url == PRODUCTION["DATABASE_OWNER_URL"]
    assert found.redis_url == PRODUCTION["REDIS_URL"]
    assert found.encryption_keys == (KEY,)
    assert found.base_host == "isolane.example.com"


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.name)
@pytest.mark.parametrize("value", ["", "  "])
def test_what_a_process_needs_is_asked_for(tmp_path: Path, process: Process, value: str) -> None:
    whole = {"ISOLANE_HOME": str(tmp_path), **PRODUCTION, "FLOWER_PASSWORD": "f"}
    env.require(process, {name: whole.get(name, "") for name in ("ISOLANE_HOME", *process.needs)})
    for name in set(process.needs) - {"DATABASE_URL"}:
        with pytest.raises(
            ImproperlyConfigured, match=f"^{name} is not set. Set {name} or {name}_FILE"
        ):
            env.require(process, {**whole, name: value})


def test_what_a_process_does_not_need_may_be_missing(tmp_path: Path) -> None:
    least = {name: PRODUCTION[name] for name in ("DATABASE_URL", "BASE_HOST")}
    found = env.read({"ISOLANE_HOME": str(tmp_path), **least})
    assert (found.redis_url, found.secret_key, found.encryption_keys) == ("", "", ())


def test_the_host_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^BASE_HOST is not set"):
        read(tmp_path, BASE_HOST="")


def test_the_database_must_be_named_unless_it_is_embedded(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^DATABASE_URL is not set"):
        read(tmp_path, DATABASE_URL="", ISOLANE_EMBEDDED="0")


def test_the_owners_url_may_be_left_out(tmp_path: Path) -> None:
    assert read(tmp_path, DATABASE_OWNER_URL="").database_owner_url == ""


def test_the_workers_login_is_one_in_the_same_database(tmp_path: Path) -> None:
    assert read(tmp_path).database_worker_url == ""
    url = "postgresql://worker:pw@db.example.com:5433/shop"
    assert read(tmp_path, DATABASE_WORKER_URL=url).database_worker_url == url
    elsewhere = url.replace("/shop", "/other")
    with pytest.raises(ImproperlyConfigured, match=r"^DATABASE_WORKER_URL names another database"):
        read(tmp_path, DATABASE_WORKER_URL=elsewhere)


@pytest.mark.parametrize("name", sorted(PRODUCTION))
def test_a_value_may_lie_in_a_file(tmp_path: Path, name: str) -> None:
    file = tmp_path / "secret"
    file.write_text(PRODUCTION[name] + "\n")
    assert read(tmp_path, **{name: "", f"{name}_FILE": str(file)}) == read(tmp_path)


def test_no_sandbox_shows_such_a_file_but_everybody_needs_certificates(tmp_path: Path) -> None:
    secret = {"SECRET_KEY_FILE": "/run/secrets/key", "ISOLANE_SECRETS_DIR": "/run/tenants"}
    public = {"SSL_CERT_FILE": "/etc/ssl/ca.pem", "CUSTOM_CA_CERTS_FILE": "/etc/ssl/own.pem"}
    found = env.private_paths({"ISOLANE_HOME": str(tmp_path), **secret, **public})
    assert set(found) == {tmp_path, Path("/run/secrets/key"), Path("/run/tenants")}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with pytest.raises(
        ImproperlyConfigured, match=r"SECRET_KEY_FILE: cannot read .*missing.*No such"
    ):
        read(tmp_path, SECRET_KEY="", SECRET_KEY_FILE=missing)


@pytest.mark.parametrize("name", ["DATABASE_URL", "DATABASE_OWNER_URL"])
def test_what_is_no_postgresql_address_is_refused_without_showing_it(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(
        ImproperlyConfigured, match=f"^{name} is not a PostgreSQL address"
    ) as refused:
        read(tmp_path, **{name: "hunter2@localhost/shop"})
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "name", ["ISOLANE_WORKER_CONCURRENCY", "ISOLANE_WORKER_CAPACITY", "DATABASE_POOL_SIZE"]
)
@pytest.mark.parametrize("value", ["many", "-1", "2.5", "1e3"])
def test_a_wrong_number_is_refused(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{name} is '{value}'; use a whole number"):
        read(tmp_path, **{name: value})


@pytest.mark.parametrize(
    ("name", "least"), [("ISOLANE_WORKER_CONCURRENCY", 2), ("ISOLANE_WORKER_CAPACITY", 1)]
)
def test_a_number_that_is_too_small_is_refused(tmp_path: Path, name: str, least: int) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{name} is .* from {least} upward"):
        read(tmp_path, **{name: str(least - 1)})


# --- limits of a run
def test_a_run_has_limits_without_a_word_of_the_operator(tmp_path: Path) -> None:
    default = RunLimits(
        cpu=1,
        ram_mb=512,
        processes=64,
        disk_mb=100,
        open_files=256,
        output_kb=256,
        connections=64,
        network_mb=4096,
        idle_seconds=1800,
    )
    assert read(tmp_path).run_limits == default
    assert env.read_limits({}) == default


def test_each_limit_has_its_variable(tmp_path: Path) -> None:
    given = {
        "cpu": 0.5,
        "ram_mb": 64,
        "processes": 8,
        "disk_mb": 1,
        "open_files": 32,
        "output_kb": 7,
        "connections": 3,
        "network_mb": 5,
        "idle_seconds": 9,
    }
    variables = {f"ISOLANE_LIMIT_{name.upper()}": str(value) for name, value in given.items()}
    assert asdict(read(tmp_path, **variables).run_limits) == {**given, "seconds": None}
    assert asdict(env.read_limits(variables)) == {**given, "seconds": None}


@pytest.mark.parametrize(
    ("name", "wrong", "usable"),
    [
        ("CPU", "0", "a number from 0.1 to 1024"),
        ("CPU", "nan", "a number from 0.1 to 1024"),
        ("CPU", "two", "a number from 0.1 to 1024"),
        ("RAM_MB", "63", "a whole number from 64 to 1048576"),
        ("RAM_MB", "512.5", "a whole number from 64 to 1048576"),
        ("RAM_MB", "9" * 5000, "a whole number from 64 to 1048576"),
        ("PROCESSES", "7", "a whole number from 8 to 32768"),
        ("DISK_MB", "0", "a whole number from 1 to 1048576"),
        ("OPEN_FILES", "-32", "a whole number from 32 to 1048576"),
        ("OUTPUT_KB", "10241", "a whole number from 1 to 10240"),
        ("CONNECTIONS", "0", "a whole number from 1 to 4096"),
        ("NETWORK_MB", "1048577", "a whole number from 1 to 1048576"),
        ("IDLE_SECONDS", "86401", "a whole number from 1 to 86400"),
    ],
)
def test_a_limit_out_of_its_range_is_refused(
    tmp_path: Path, name: str, wrong: str, usable: str
) -> None:
    said = f"ISOLANE_LIMIT_{name} is '{wrong}'; use {usable}."
    with pytest.raises(ImproperlyConfigured) as refused:
        read(tmp_path, **{f"ISOLANE_LIMIT_{name}": wrong})
    assert str(refused.value) == said


@pytest.mark.parametrize("name", ["ISOLANE_EMBEDDED", "ISOLANE_BEHIND_TLS"])
def test_a_wrong_flag_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{name} is 'maybe'; use 1 or 0"):
        read(tmp_path, **{name: "maybe"})


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("No", False), ("TRUE", True)])
def test_a_flag(tmp_path: Path, value: str, expected: bool) -> None:
    assert read(tmp_path, ISOLANE_BEHIND_TLS=value).behind_tls is expected


def test_several_encryption_keys(tmp_path: Path) -> None:
    assert read(tmp_path, ENCRYPTION_KEYS=f"{KEY}, {KEY}").encryption_keys == (KEY, KEY)


def test_a_wrong_encryption_key_is_named_by_its_place_only(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="ENCRYPTION_KEYS: key 2 is not") as refused:
        read(tmp_path, ENCRYPTION_KEYS=f"{KEY},hunter2")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("value", "ours", "kombus"),
    [
        ("redis://h/0", "redis://h/0", "redis://h/0"),
        ("unix://:pw@/s.sock", "unix://:pw@/s.sock", "redis+socket://:pw@/s.sock"),
        ("unix://me:pw@/s.sock", "unix://me:pw@/s.sock", "redis+socket://me:pw@/s.sock"),
        ("redis+socket:///s.sock", "unix:///s.sock", "redis+socket:///s.sock"),
    ],
)
def test_redis_urls(tmp_path: Path, value: str, ours: str, kombus: str) -> None:
    found = read(tmp_path, REDIS_URL=value).redis_url
    assert (found, env.broker_url(found)) == (ours, kombus)


@pytest.mark.parametrize("value", ["amqp://h", "http://h"])
def test_another_broker_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"REDIS_URL starts with .* use one of redis"):
        read(tmp_path, REDIS_URL=value)


@pytest.mark.parametrize(("concurrency", "capacity"), [("2", 1), ("3", 1), ("10", 8)])
def test_capacity_leaves_threads_for_duplicates(
    tmp_path: Path, concurrency: str, capacity: int
) -> None:
    assert read(tmp_path, ISOLANE_WORKER_CONCURRENCY=concurrency).worker_capacity == capacity


@pytest.mark.parametrize("capacity", ["4", "5"])
def test_capacity_must_be_smaller_than_concurrency(tmp_path: Path, capacity: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"ISOLANE_WORKER_CAPACITY .* must be smaller"):
        read(tmp_path, ISOLANE_WORKER_CONCURRENCY="4", ISOLANE_WORKER_CAPACITY=capacity)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SECRET_KEY", "change-me-to-fifty-or-more-random-characters-0123456789abcdef"),
        ("ENCRYPTION_KEYS", f"{KEY},{ENCRYPTION_KEY}"),
        ("FLOWER_PASSWORD", "change-me"),
        ("DATABASE_URL", "postgresql://isolane_login:change-me@db.example.com/isolane"),
        ("DATABASE_URL", "host=db.example.com password=change-me"),
        ("DATABASE_OWNER_URL", "postgresql://isolane_owner:change%2Dme@db.example.com/isolane"),
        ("REDIS_URL", "rediss://isolane_web:change-me@broker.example.com:6379/0"),
        ("ISOLANE_CACHE_URL", "rediss://:Change-Me@cache.example.com:6379/0"),
    ],
)
def test_published_sample_values_are_refused_by_name(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{name} has the published sample value"):
        read(tmp_path, **{name: value})
    file = tmp_path / "secret"
    file.write_text(value)
    with pytest.raises(ImproperlyConfigured, match=f"^{name} has the published sample value"):
        read(tmp_path, **{name: "", f"{name}_FILE": str(file)})


@pytest.mark.parametrize("wrong", ["flower.internal", "flower:x", "u:p@flower:1", "http://f:1"])
def test_an_own_address_has_a_host_and_a_port(tmp_path: Path, wrong: str) -> None:
    found = read(tmp_path, ISOLANE_OWN_ADDRESSES="flower.internal:5555, [::1]:8000").own_addresses
    assert found == (("flower.internal", 5555), ("::1", 8000))
    with pytest.raises(ImproperlyConfigured, match=r"^ISOLANE_OWN_ADDRESSES: .* not a host with a"):
        read(tmp_path, ISOLANE_OWN_ADDRESSES=wrong)


# --- what runs use
def test_without_more_words_runs_have_no_cache_and_reach_no_closed_network(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert (found.cache_url, found.resource_networks, found.secrets_dir) == ("", (), "")


def test_a_cache_beside_the_broker(tmp_path: Path) -> None:
    url = "rediss://:pw@redis.example.com:6381/0"
    assert read(tmp_path, ISOLANE_CACHE_URL=url).cache_url == url
    file = tmp_path / "url"
    file.write_text(url + "\n")
    assert read(tmp_path, ISOLANE_CACHE_URL_FILE=str(file)).cache_url == url


def test_the_broker_is_no_cache(tmp_path: Path) -> None:
    with pytest.raises(
        ImproperlyConfigured, match=r"^ISOLANE_CACHE_URL is the server of REDIS_URL"
    ):
        read(tmp_path, ISOLANE_CACHE_URL=PRODUCTION["REDIS_URL"].removesuffix("/1"))


@pytest.mark.parametrize("between", [",", " ", ", ", "\n"])
def test_networks(tmp_path: Path, between: str) -> None:
    given = between.join(["10.1.0.0/16", "192.168.7.9", "FD00:0::/8"])
    found = read(tmp_path, ISOLANE_RESOURCE_NETWORKS=given).resource_networks
    assert found == ("10.1.0.0/16", "192.168.7.9/32", "fd00::/8")


@pytest.mark.parametrize("wrong", ["10.1.2.3/16", "10.0.0.0/33", "db.internal", "10.0.0.0-10"])
def test_what_is_no_network_is_named(tmp_path: Path, wrong: str) -> None:
    for name in ("ISOLANE_RESOURCE_NETWORKS", "ISOLANE_TRUSTED_PROXIES"):
        with pytest.raises(ImproperlyConfigured, match=rf"^{name}: ") as refused:
            read(tmp_path, **{name: f"127.0.0.0/8,{wrong}"})
    assert wrong in str(refused.value)
    assert "use networks such as 10.1.0.0/16" in str(refused.value)


def test_the_folder_of_secrets(tmp_path: Path) -> None:
    assert read(tmp_path, ISOLANE_SECRETS_DIR="/run/secrets").secrets_dir == "/run/secrets"
    with pytest.raises(
        ImproperlyConfigured, match=r"^ISOLANE_SECRETS_DIR is 'secrets'; use an abs"
    ):
        read(tmp_path, ISOLANE_SECRETS_DIR="secrets")


def test_directories_may_have_blanks_in_their_names(tmp_path: Path) -> None:
    paths = ("/srv/our nodes", "/srv/a,b", "nodes")
    given = os.pathsep.join(("", *paths, ""))
    assert read(tmp_path, ISOLANE_NODE_PATHS=given).node_paths == paths
    assert read(tmp_path).node_paths == ()


# --- the embedded stack
def embedded(home: Path, **changes: str) -> env.Env:
    return env.read({"ISOLANE_HOME": str(home), **changes})


def write_state(home: Path, **environment: str) -> None:
    (home / "state.json").write_text(json.dumps({"pid": 1, "environment": environment}))


def test_without_a_database_the_stack_is_embedded_and_needs_no_secrets(tmp_path: Path) -> None:
    found = embedded(tmp_path)
    assert found.embedded
    assert not found.behind_tls
    assert found.base_host == "localhost"
    assert len(found.secret_key) > 50
    assert found.secret_key != embedded(tmp_path).secret_key


def test_a_running_stack_is_found_by_its_state_file(tmp_path: Path) -> None:
    write_state(tmp_path, **PRODUCTION, ISOLANE_EMBEDDED="1")
    found = embedded(tmp_path, SECRET_KEY="said by the operator", DATABASE_URL="")
    assert found.embedded
    assert found.database_url == PRODUCTION["DATABASE_URL"]
    assert found.secret_key == "said by the operator"


def test_a_named_database_counts_more_than_a_running_stack(tmp_path: Path) -> None:
    write_state(tmp_path, REDIS_URL="redis://embedded")
    assert read(tmp_path).redis_url == PRODUCTION["REDIS_URL"]


def test_what_the_supervisor_started_looks_for_nothing_more(tmp_path: Path) -> None:
    write_state(tmp_path, SECRET_KEY="of the operator", REDIS_URL="redis://operator")
    own = {"ISOLANE_HOME": str(tmp_path), "ISOLANE_EMBEDDED": "1", "REDIS_URL": "redis://own"}
    assert env.read(own).secret_key != "of the operator"
    assert env.read_flower(own) == env.FlowerEnv(
        redis_url="redis://own", user="admin", password="", trusted_proxies=(), ready_file=""
    )


def test_an_unreadable_state_file_is_no_stack(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"pid": 1, "envir')
    assert embedded(tmp_path).database_url == ""
