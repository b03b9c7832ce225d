"""Servers, workers and drivers of the chains, and a customer's PostgreSQL, for as long as the benchmark runs.

Timing: a long-running process of its own.
Model: sync, main thread.
Guarantee: what it starts ends with it, also when it is killed; then only its directory stays.
Failure: a child that cannot start ends the benchmark with the tail of its log.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from bench.context.chains import CONTENDERS
from bench.context.environment import added
from bench.driver import Driver
from bench.environment import clean
from bench.stage import STATISTICS, Stage, platform_environ, platform_workers, running_servers
from orchestrator.embedded.customer import CustomerPostgres
from orchestrator.embedded.private_files import replace_private
from orchestrator.embedded.stack import EmbeddedServers

PROGRAM = "bench.context.serve"


@dataclass(frozen=True, kw_only=True)
class ContextStage(Stage):
    """A stage with the server that the steps query."""

    customer: CustomerPostgres


@contextmanager
def stage(*, profile: bool = False) -> Iterator[ContextStage]:
    """Start everything; the same two workers run the chains of all modes."""
    statistics = STATISTICS if profile else None
    with running_servers(statistics) as (servers, supervisor), ExitStack() as stack:
        customer = CustomerPostgres(servers.paths)
        customer.prepare()
        supervisor.start(customer.child())
        customer.bootstrap()
        environ, logs = _environ(servers, customer), servers.paths.logs
        drivers = {
            name: stack.enter_context(Driver(name, environ, logs, program=PROGRAM))
            for name in CONTENDERS
        }
        for driver in drivers.values():
            driver.call("prepare")
        for worker in platform_workers(environ, logs if profile else None):
            supervisor.start(worker)
        yield ContextStage(
            servers=servers, supervisor=supervisor, drivers=drivers, customer=customer
        )


def _environ(servers: EmbeddedServers, customer: CustomerPostgres) -> dict[str, str]:
    file = servers.paths.home / "customer.address"
    replace_private(file, customer.url(customer.reader))
    return {**clean(os.environ), **platform_environ(servers), **added(str(file))}
