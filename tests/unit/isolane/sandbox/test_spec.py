"""isolane.sandbox.spec and .report: what worker and zygote tell each other arrives as it was."""

import json
import math

import pytest

from isolane.limits import RunLimits
from isolane.sandbox.report import ExitReport
from isolane.sandbox.spec import SandboxSpec, Wall

LIMITS = RunLimits(cpu=0.5, ram_mb=64, processes=8, connections=3, network_mb=7, idle_seconds=2)


@pytest.mark.parametrize(
    "spec",
    [
        SandboxSpec(limits=RunLimits()),
        SandboxSpec(
            limits=LIMITS,
            until=12.5,
            outside=0x40000001,
            counted=frozenset({"cpu", "ram_mb"}),
            walls=frozenset({Wall.NET}),
        ),
    ],
)
def test_a_spec_arrives_as_it_was(spec: SandboxSpec) -> None:
    assert SandboxSpec.decode(json.loads(json.dumps(spec.encode()))) == spec


def test_without_more_it_has_every_wall_and_no_end() -> None:
    spec = SandboxSpec(limits=RunLimits())
    assert spec.walls == frozenset(Wall)
    assert spec.until == math.inf


@pytest.mark.parametrize(
    ("spec", "looks"),
    [
        (SandboxSpec(limits=LIMITS), True),
        (SandboxSpec(limits=RunLimits(cpu=1)), False),
        (SandboxSpec(limits=LIMITS, counted=frozenset({"ram_mb"})), False),
        (SandboxSpec(limits=LIMITS, counted=frozenset({"cpu"})), True),
        (SandboxSpec(limits=LIMITS, walls=frozenset(Wall) - {Wall.LIMITS}), False),
    ],
)
def test_the_guard_looks_at_ram_where_nothing_else_counts_it(
    spec: SandboxSpec, looks: bool
) -> None:
    assert spec.looks_at_ram == looks


def test_a_report_arrives_as_it_was() -> None:
    report = ExitReport(status=9, cpu_seconds=1.5, peak_ram_mb=20.25, lapsed=True, final=True)
    assert ExitReport.decode(report.encode()) == report


@pytest.mark.parametrize(
    ("status", "code"), [(None, None), (0, 0), (7 << 8, 7), (9, -9), (35, -35), (11 | 0x80, -11)]
)
def test_an_exit_code_is_that_of_the_process_or_its_signal(
    status: int | None, code: int | None
) -> None:
    assert ExitReport(status=status).exit_code == code
