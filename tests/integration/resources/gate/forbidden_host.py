"""Runs with declared servers in `tests.own_network` that try the ways to what is forbidden.

The gate and its backend are the real ones; so are the servers, behind TLS where it is theirs.
"""

import contextlib
import os
import socket
import tempfile
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

from tests import plugin
from tests.forbidden_targets import ForbiddenTargets

os.environ["DJANGO_SETTINGS_MODULE"] = "orchestrator.settings"
import django

django.setup()

from django.test import override_settings  # noqa: E402 - after the settings, as all below

from foundation.errors import IsolaneError  # noqa: E402
from isolane.gate.frames import FrameKind, GateFrame, encode  # noqa: E402
from isolane.limits import RunLimits  # noqa: E402
from isolane.protocol import Grant, Run  # noqa: E402
from orchestrator.embedded.run_cache import EmbeddedRunCache  # noqa: E402
from orchestrator.embedded.secrets import load_secrets  # noqa: E402
from orchestrator.embedded.supervisor import Supervisor  # noqa: E402
from resources.addresses import policy_from_settings, resolve  # noqa: E402
from resources.gate import dialing  # noqa: E402
from resources.gate.record import ConnectionRecord  # noqa: E402
from resources.issuers.cache import CacheIssuer  # noqa: E402
from resources.runtimes.base import RunIdentity  # noqa: E402
from resources.runtimes.process import ProcessBackend  # noqa: E402
from tests.integration.resources.gate.sandboxes import database_grant, http_grant  # noqa: E402
from tests.integration.resources.issuers.resource_requests import cache_request  # noqa: E402
from tests.placements import a_placement  # noqa: E402
from tests.tls_certificates import temporary_authority  # noqa: E402
from tests.tls_servers.https import HttpsServer  # noqa: E402
from tests.tls_servers.relays import TlsPostgres  # noqa: E402

API, DATABASE = "api.example.com", "db.example.com"
API_ADDRESS, DATABASE_ADDRESS = "93.184.215.20", "93.184.215.21"
FORBIDDEN_ADDRESS = "10.66.0.1"
NODES = (
    "tests.integration.isolane.gate.forbidden_nodes",
    "tests.integration.resources.gate.server_nodes",
)
_SECONDS = 60.0


@dataclass(frozen=True)
class _Stage:
    """The servers, what a run is granted of them, and the facts for the ways."""

    targets: ForbiddenTargets
    backend: ProcessBackend
    https: HttpsServer
    grants: tuple[Grant, ...]
    facts: dict[str, Any]
    places: tuple[str, ...]  # of the servers, as packets to them are counted


def try_everything(targets: ForbiddenTargets, given: Any) -> dict[str, Any]:
    """Return the ends of the ways, and what was counted; then what became of a name that leads elsewhere."""
    with _staged(targets, given) as stage:
        if not (found := stage.backend.availability()).ok:
            return {"unavailable": found.reason}
        parts: dict[str, Callable[[_Stage, Any], Any]] = {
            "ways": _try_ways, "rebound": _rebind, "closed": _close_a_network, "redirects": _redirect,
            "unchecked": _without_checks,
        }  # fmt: skip
        told: dict[str, Any] = {}
        for name, part in parts.items():
            before = targets.told()
            told[name] = {"returned": part(stage, given), **_counted(before, targets.told(), stage)}
        return told


def _counted(before: Any, after: Any, stage: _Stage) -> dict[str, Any]:
    """Return what came meanwhile, without the connections of the worker to the declared servers."""
    return {
        "connections": sorted(_more(before["connections"], after["connections"])),
        "attempts": sorted(_more(before["attempts"], after["attempts"]) - set(stage.places)),
        "names": after["names"][len(before["names"]) :],
    }


def _more(before: dict[str, int], after: dict[str, int]) -> set[str]:
    return {name for name, number in after.items() if number > before.get(name, 0)}


def _try_ways(stage: _Stage, given: Any) -> dict[str, Any]:
    """Use the servers, try the ways, and use them again; and some ways in runs of their own."""
    with _running(stage, stage.grants) as run:
        uses = [_use(run)]
        ends = run("forbidden.try", names=given["together"], facts=stage.facts)
        uses.append(_use(run))
    alone = []
    for name in given["alone"]:
        with _running(stage, stage.grants) as run:
            alone.append(run("forbidden.try", names=[name], facts=stage.facts))
    asked = [
        (seen.header("host"), seen.header("authorization"))
        for seen in stage.https.endpoints.requests
    ]
    return {
        "together": ends,
        "alone": alone,
        "uses": uses,
        # Hosts that were asked for with the secret; without it by a tunnel.
        "hosts": sorted({host.partition(":")[0] for host, secret in asked if host and secret}),
    }


def _use(run: Callable[..., Any]) -> list[Any]:
    api = run("servers.http_api")["output"]["told"]["authorization"]
    user = run("servers.database")["output"]["user"]
    return [api, user, run("servers.cache")["output"]["value"]]


def _rebind(stage: _Stage, given: Any) -> dict[str, Any]:
    """Let the declared name lead elsewhere, after its address was checked and before."""
    names, policy = stage.targets.names, policy_from_settings()
    names.addresses[API] = [API_ADDRESS]
    address = resolve(API, stage.https.port, policy)
    names.addresses[API] = ["169.254.169.254"]
    seen = len(stage.https.endpoints.requests)
    with _running(stage, [replace(stage.grants[0], address=address)]) as run:
        answer = run("servers.http_api")["output"]["status"]
    requests = len(stage.https.endpoints.requests) - seen
    try:
        refused = resolve(API, stage.https.port, policy)
    except IsolaneError as error:
        refused = error.code
    return {"answer": answer, "requests": requests, "later": refused}


def _close_a_network(stage: _Stage, given: Any) -> dict[str, Any]:
    """Connect to an address that was allowed when the placement opened, and is not any more."""
    with override_settings(RESOURCE_NETWORKS=["10.0.0.0/8"]):
        address = resolve(FORBIDDEN_ADDRESS, 80, policy_from_settings())
    grant = _leading_to(stage, address)
    records: list[ConnectionRecord] = []
    with _running(stage, [grant], records) as run:
        answer = run("servers.http_api")["output"]
    return {"answer": answer, "reasons": [record.reason.value for record in records]}


def _redirect(stage: _Stage, given: Any) -> list[Any]:
    """Follow a declared server's redirects to others, by the handle."""
    with _running(stage, stage.grants) as run:
        paths = ["/redirect?to=http://169.254.169.254/", "/redirect?to=http://undeclared.example/"]
        return [run("servers.http_api", path=path, follow=True)["code"] for path in paths]


def _without_checks(stage: _Stage, given: Any) -> Any:
    """Do what `_close_a_network` does with a gate that does not check addresses."""
    with mock.patch.object(dialing, "_check"):
        with _running(stage, [_leading_to(stage, FORBIDDEN_ADDRESS)]) as run:
            return run("servers.http_api")["output"]


def _leading_to(stage: _Stage, address: str) -> Grant:
    config = {"base_url": f"http://{API}:80", "auth": "bearer"}
    return replace(stage.grants[0], address=address, config=config)


@contextlib.contextmanager
def _running(
    stage: _Stage, grants: Sequence[Grant], records: list[ConnectionRecord] | None = None
) -> Iterator[Callable[..., Any]]:
    """Yield what runs a step of a run with these grants."""
    runtime = stage.backend.start(
        a_placement(f"{time.monotonic_ns()}"),
        identity=RunIdentity(tenant="acme"),
        limits=RunLimits(processes=64, seconds=_SECONDS),
        grants=grants,
        on_connection=(records if records is not None else []).append,
    )

    def run(uses: str, **parameters: Any) -> dict[str, Any]:
        step = Run(
            step="try", uses=uses, parameters=parameters, variables={}, attempt=0, seed=7,
            timeout_s=_SECONDS, idempotency_key="key",
        )  # fmt: skip
        result = runtime.run(
            step,
            deadline=time.monotonic() + _SECONDS,
            cancelled=threading.Event(),
            on_frame=lambda _: None,
        )
        return {
            "status": result.status,
            "code": result.code,
            "message": result.message,
            "output": result.output,
        }

    try:
        runtime.open()
        yield run
    finally:
        runtime.close(5)


@contextlib.contextmanager
def _staged(targets: ForbiddenTargets, given: Any) -> Iterator[_Stage]:
    """Start the servers; the PostgreSQL is the tests' own one, by its Unix socket."""
    with contextlib.ExitStack() as stack:
        authority = stack.enter_context(temporary_authority())
        https = HttpsServer(authority.issue(API), host=API_ADDRESS)
        to = given["postgres"]
        database = TlsPostgres(
            authority.issue(DATABASE), to_host=to["host"], to_port=to["port"], host=DATABASE_ADDRESS
        )
        stack.enter_context(https.serving())
        stack.enter_context(database.serving())
        cache = _cache(stack)
        login = (given["dbname"], given["user"], given["password"])
        grants = (
            http_grant(https, authority.pem, name=API),
            database_grant(database, authority.pem, login=login, name=DATABASE),
            cache[0],
        )
        backend = ProcessBackend(level="process", size=1, packages=NODES)
        stack.callback(backend.stop)
        facts = {
            "http": {"host": API, "port": https.port},
            "database": {
                "host": DATABASE,
                "port": database.port,
                "user": login[1],
                "dbname": login[0],
            },
            "cache": {"host": "run-cache", "port": 6379, **cache[1]},
            **_local_sockets(stack),
            "frames": [b64encode(encode(frame)).decode() for frame in _FRAMES],
        }
        places = [f"tcp {server.host}:{server.port}" for server in (https, database)] + [
            f"tcp 127.0.0.1:{cache[0].config['port']}"
        ]
        yield _Stage(targets, backend, https, grants, facts, tuple(places))


# As the forwarder would send them: for a route that there is, for one that there is not, and of a made-up connection.
_FRAMES = (
    GateFrame(FrameKind.DIAL, 1, 0),
    GateFrame(FrameKind.DIAL, 2, 99),
    GateFrame(FrameKind.DATA, 1, data=b"GET http://169.254.169.254/ HTTP/1.1\r\n\r\n"),
    GateFrame(FrameKind.REFUSED_NAME, data=b"undeclared.example"),
)


def _cache(stack: contextlib.ExitStack) -> tuple[Grant, dict[str, str]]:
    """Start a run cache with the user of a run, and another run's key."""
    plugin.PATHS.prepare()
    cache = EmbeddedRunCache(plugin.PATHS, load_secrets(plugin.PATHS.secrets_file))
    cache.prepare()
    supervisor = stack.enter_context(Supervisor(plugin.PATHS.logs))
    supervisor.start(cache.child())
    issuer = CacheIssuer(cache.url)
    own, other = [
        issuer.issue(request, issuer.plan(request))
        for request in (cache_request(), cache_request())
    ]
    facts = {"prefix": own.config["prefix"], "other": f"{other.config['prefix']}key"}
    return replace(own, name="cache"), facts


def _local_sockets(stack: contextlib.ExitStack) -> dict[str, list[str]]:
    """Listen where programs of the machine do."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    Path(folder).chmod(0o755)
    path, abstract = f"{folder}/socket", f"isolane-test-{os.getpid()}"
    for address in (path, f"\0{abstract}"):
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(address)
        listener.listen()
    Path(path).chmod(0o777)
    return {"unix_paths": [path], "abstract": [abstract]}
