"""The operator's values take precedence over generated ones; a worker reports itself when it is ready."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator import stack as stack_module
from orchestrator.embedded.child import ServerProcess
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.secrets import Secrets
from orchestrator.processes import CREDENTIALS, FLOWER, PROCESSES, PROVISIONER, WEB, WORKER
from orchestrator.stack import Stack, credentials_of, platform_environment

URLS = {"DATABASE_URL": "postgresql://db/shop", "REDIS_URL": "redis://broker/0"}


def test_secrets_are_made_where_none_is_given() -> None:
    secrets = Secrets()
    environment = platform_environment({"SECRET_KEY": ""}, URLS, secrets)
    assert environment.items() >= URLS.items()
    assert environment["SECRET_KEY"] == secrets.django_secret_key
    assert environment["ENCRYPTION_KEYS"] == secrets.encryption_key
    assert environment["FLOWER_PASSWORD"] == secrets.flower_password
    assert environment["BASE_HOST"] == "localhost"


def test_what_is_given_stays(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("newer,older\n")
    given = {
        "SECRET_KEY": "mine",
        "FLOWER_PASSWORD": "mine too",
        "BASE_HOST": "isolane.example.com",
        "ISOLANE_NODE_PACKAGES": "my_nodes",
    }
    found = platform_environment({**given, "ENCRYPTION_KEYS_FILE": str(keys)}, URLS, Secrets())
    assert found.items() >= given.items()
    assert found["ENCRYPTION_KEYS"] == "newer,older"


def test_resources_reach_closed_networks_only_if_somebody_says_so() -> None:
    name, told = "ISOLANE_RESOURCE_NETWORKS", {"ISOLANE_RESOURCE_NETWORKS": "10.0.0.0/8"}
    assert platform_environment({}, URLS, Secrets())[name] == ""
    demo = platform_environment({}, URLS, Secrets(), resource_networks="127.0.0.0/8")
    assert demo[name] == "127.0.0.0/8"
    asked = platform_environment(told, URLS, Secrets(), resource_networks="127.0.0.0/8")
    assert asked[name] == "10.0.0.0/8"


class Starting:
    """A supervisor that starts nothing."""

    def __init__(self) -> None:
        self.pids = {"worker-1": 42, "provisioner": 44, "web": 44, "flower": 44}
        self.children: dict[str, ServerProcess] = {}

    def start(self, *children: ServerProcess) -> None:
        """Remember them."""
        self.children = {child.name: child for child in children}


def starting(supervisor: Any, home: Path) -> Stack:
    return Stack(
        supervisor=supervisor,
        secrets=Secrets(),
        settings={"BASE_HOST": "localhost"},
        credentials={
            process: {f"{name}_FILE": f"{process.name}/{name}" for name in process.credentials}
            for process in PROCESSES
        },
        web_url="",
        flower_url="",
        cache_address="127.0.0.1:7",
        ports=(1, 2),
        paths=EmbeddedPaths(home),
    )


def test_each_process_is_told_where_its_own_credentials_lie_and_inherits_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*CREDENTIALS, "ISOLANE_API_KEY"):
        monkeypatch.setenv(name, "hunter2")
        monkeypatch.setenv(f"{name}_FILE", "elsewhere")
    supervisor: Any = Starting()
    starting(supervisor, tmp_path).start_processes(1)
    for child in supervisor.children.values():
        assert "hunter2" not in child.env.values()
        found = {name for name in CREDENTIALS if f"{name}_FILE" in child.env}
        expected = {
            "web": {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ENCRYPTION_KEYS"},
            "worker-1": {"DATABASE_URL", "REDIS_URL", "ENCRYPTION_KEYS", "ISOLANE_CACHE_URL"},
            "provisioner": {"DATABASE_URL", "DATABASE_OWNER_URL"},
            "flower": {"REDIS_URL", "FLOWER_PASSWORD"},
        }
        assert found == expected[child.name]
        own = child.name.partition("-")[0]
        assert {child.env[f"{name}_FILE"] for name in found} == {f"{own}/{name}" for name in found}


def test_a_process_gets_no_more_of_the_values_than_its_row_says() -> None:
    whole = {name: name.lower() for name in CREDENTIALS}
    assert credentials_of(FLOWER, whole, "own") == {
        "REDIS_URL": "own",
        "FLOWER_PASSWORD": "flower_password",
    }
    assert credentials_of(PROVISIONER, whole, "") == {
        "DATABASE_URL": "database_url",
        "DATABASE_OWNER_URL": "database_owner_url",
    }
    assert credentials_of(WORKER, {**whole, "ISOLANE_CACHE_URL": ""}, "") == {
        "DATABASE_URL": "database_worker_url",
        "REDIS_URL": "redis_url",
        "ENCRYPTION_KEYS": "encryption_keys",
    }


def test_without_a_login_of_their_own_workers_log_in_as_web_does() -> None:
    found = credentials_of(WORKER, {"DATABASE_URL": "web's"}, "")
    assert found == credentials_of(WEB, {"DATABASE_URL": "web's"}, "") == {"DATABASE_URL": "web's"}


def test_secrets_of_tenants_reach_the_workers_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "ISOLANE_SECRET_ACME__BILLING_PASSWORD"
    monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("ISOLANE_SECRETS_DIR", "/run/secrets")
    supervisor: Any = Starting()
    starting(supervisor, tmp_path).start_processes(2)

    having = {one.name for one in supervisor.children.values() if name in (one.env or {})}
    assert having == {"worker-1", "worker-2"}
    for child in supervisor.children.values():
        assert child.env["ISOLANE_SECRETS_DIR"] == "/run/secrets"


@pytest.mark.parametrize("name", ["provisioner", "web", "flower"])
def test_a_process_is_ready_when_it_and_not_its_predecessor_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Nor another program, which may answer at its port."""
    monkeypatch.setattr(stack_module, "_answers", lambda _: True)
    supervisor: Any = Starting()
    said = EmbeddedPaths(tmp_path).ready_file(name)
    said.write_text("44 ")  # of another day
    stack = starting(supervisor, tmp_path)
    stack.start_processes(1)

    child = supervisor.children[name]
    assert child.env["ISOLANE_READY_FILE"] == str(said)
    found = [child.ready()]
    for words in ("", "43 ", "44 "):
        said.write_text(words)
        found.append(child.ready())
    assert found == [False, False, False, True]
    assert stack.node_names() == {}


def test_the_state_tells_where_an_operator_finds_all_and_shows_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOLANE_SECRET_ACME__BILLING_PASSWORD", "hunter3")
    state = starting(Starting(), tmp_path).describe()
    assert "hunter3" not in repr(state)
    assert state.cache_address == "127.0.0.1:7"
    assert state.environment == {
        "BASE_HOST": "localhost",
        **{f"{name}_FILE": f"operator/{name}" for name in CREDENTIALS},
    }


def test_a_worker_is_ready_when_it_and_not_its_predecessor_says_so(tmp_path: Path) -> None:
    supervisor: Any = Starting()
    said = EmbeddedPaths(tmp_path).ready_file("worker-1")
    said.write_text("42 w1@here")  # of another day
    stack = starting(supervisor, tmp_path)
    stack.start_processes(1)

    assert list(supervisor.children) == ["web", "worker-1", "provisioner", "flower"]
    worker = supervisor.children["worker-1"]
    assert worker.env["ISOLANE_READY_FILE"] == str(said)
    found = [worker.ready()]
    for words in ("", "41 w0@here", "42 w1@here"):
        said.write_text(words)
        found.append(worker.ready())
    assert found == [False, False, False, True]
    assert stack.node_names() == {"worker-1": "w1@here"}
    supervisor.pids["worker-1"] = 43
    assert stack.node_names() == {}
