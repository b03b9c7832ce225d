"""executions.worker.resources.tracking: the log lines of resources, and reports that are refused."""

import json
import logging
from typing import Any

import pytest

from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner, StepFailed
from foundation.logs import JsonFormatter
from isolane.protocol import Resource
from isolane.results import Code, StepResult
from tenants.scope import TenantRef
from tests.factories import backend_of, step_of
from tests.integration.executions.worker.driving import drive, run_link
from tests.integration.executions.worker.resources.fake_remote import (
    FakeRemote,
    begin,
    handle,
    records,
)

pytestmark = pytest.mark.usefixtures("broker")


def test_an_output_with_an_injected_secret_is_refused_and_not_stored(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    placement = begin(acme, boot, "leak")
    with pytest.raises(StepFailed, match=Code.POLICY_VIOLATION):
        run_link(links, placement, "s1")
    step = step_of(acme, placement.execution_id, "s1")
    assert step.output is None
    assert "contains a secret of a resource" in step.message
    assert "issued-password" not in step.message


def test_a_runtime_that_tells_of_handles_it_does_not_have_is_not_believed(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = begin(acme, boot, "forge")
    with pytest.raises(StepFailed):
        run_link(links, placement, "s1")
    assert ("cache", "disposed", 1) not in records(acme)


def test_every_event_is_a_line_with_both_ids(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, caplog: pytest.LogCaptureFixture
) -> None:
    placement = begin(acme, boot, "open", "use", "close")
    with caplog.at_level(logging.INFO, logger="executions.worker.resources.tracking"):
        drive(acme, links, placement)
    told = [
        vars(line) for line in caplog.records if line.name == "executions.worker.resources.tracking"
    ]
    assert [(line["event"], line["resource_type"]) for line in told] == [
        ("RESOURCE_ALLOCATED", "cache.user"),
        ("RESOURCE_ALLOCATED", "cache"),
        ("RESOURCE_REUSED", "cache"),
        ("RESOURCE_DISPOSED", "cache"),
        ("RESOURCE_DISPOSED", "cache.user"),
    ]
    assert {(line["execution_id"], line["tenant_id"]) for line in told} == {
        (str(placement.execution_id), acme.schema)
    }
    assert {line["resource_id"] for line in told} == {
        handle(1, epoch=1),
        f"{placement.execution_id}/1/scratch",
    }


def test_a_disposal_that_fails_is_a_warning_with_both_ids(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    remote: FakeRemote,
    caplog: pytest.LogCaptureFixture,
) -> None:
    placement = begin(acme, boot, "open", "rest")
    run_link(links, placement, "s1")
    backend_of(boot).runtimes[-1].on_resource(
        Resource(event="disposed", name="tmp", resource_id=handle(1, epoch=1), error="it hangs")
    )
    remote.away = True
    drive(acme, links, placement)
    failed = [vars(line) for line in caplog.records if vars(line).get("event") == "RESOURCE_FAILED"]
    assert [(line["resource_type"], line["levelname"]) for line in failed] == [
        ("cache", "WARNING"),
        ("cache.user", "WARNING"),
    ]
    assert {(line["execution_id"], line["tenant_id"]) for line in failed} == {
        (str(placement.execution_id), acme.schema)
    }
    assert ("cache", "killed", 1) in records(acme)


def test_every_line_of_a_link_carries_both_ids_whoever_writes_it(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    lines: list[dict[str, Any]] = []

    def library(*_: Any) -> StepResult:
        record = logging.makeLogRecord({"name": "some.library", "msg": "said"})
        lines.append(json.loads(JsonFormatter().format(record)))
        return StepResult.succeeded(step="s1", attempt=1, output=None)

    backend = backend_of(boot)
    backend.script = {**backend.script, "rest": library}
    placement = begin(acme, boot, "rest")
    run_link(links, placement, "s1")
    library()
    inside, outside = lines
    assert (inside["execution_id"], inside["tenant_id"]) == (
        str(placement.execution_id),
        acme.schema,
    )
    assert "execution_id" not in outside
