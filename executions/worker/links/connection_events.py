"""The connections of a context on their way to the events of its run.

Timing: background-worker; a thread writes new ones once a second, the close the rest.
Model: sync; one writer of a context at a time, so that a close waits for what is being written.
Guarantee: at-least-once until the placement ends, in order; no record is written twice.
Failure: records that could not be written are tried again a second later, and last at the close, which goes on.
"""

from collections.abc import Sequence
from dataclasses import replace

from executions.placement.run_scope import run_scope
from executions.semantics.masking import Masker
from executions.transitions.append_connections import append_connections
from executions.worker.links.context import OpenContext
from resources.gate.connection_log import NumberedRecord
from resources.gate.record import ConnectionRecord
from resources.runtimes.faults import reported


def write_new_connections(context: OpenContext) -> None:
    """Write what has come since the last time; a run without connections costs no statement."""
    if context.attempt_log is None or not context.attempt_log.withheld:
        _write(context, are_last=False)


def write_last_connections(*contexts: OpenContext) -> None:
    """Write the rest, and how many were omitted, up to the first failure. Never raises: the placement must end."""
    with reported("connections of a run were not written"):
        for context in contexts:
            _write(context, are_last=True)


def _write(context: OpenContext, *, are_last: bool) -> None:
    with context.connections.taken(are_last=are_last) as records:
        if records:
            with run_scope(context.placement.tenant_id):
                append_connections(context.placement, _masked(records, context.run.memory.masker))


def _masked(records: Sequence[NumberedRecord], masker: Masker) -> list[NumberedRecord]:
    """Mask hosts: a step may have asked for a name that contains a sensitive value."""
    return [
        replace(numbered, record=replace(record, host=masker.mask(record.host)))
        if isinstance(record := numbered.record, ConnectionRecord)
        else numbered
        for numbered in records
    ]
