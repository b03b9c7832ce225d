"""Reasons as they are stored in events and on runs: codes. `executions.explain` makes the sentences. Pure."""

from enum import StrEnum


class EndReason(StrEnum):
    """Reasons for the end of a placement."""

    RUN_ENDED = "run_ended"  # its outcome is set
    PARKED = "parked"  # the run waits for a time or a person, without a slot
    CANCELLED = "cancelled"
    OVERDUE = "overdue"  # the run has used up its time
    RUNTIME_ENDED = "runtime_ended"  # the runtime died, and the run goes on in a new context
    CLAIM_UNATTENDED = (
        "claim_unattended"  # a step is claimed and runs in no thread: its answer was lost
    )
    CLOSE_UNWRITTEN = "close_unwritten"  # the outcome is set, and the close was lost
    WORKER_DRAINING = (
        "worker_draining"  # the worker stops: what is between two steps goes on elsewhere
    )
    WORKER_STOPPED = (
        "worker_stopped"  # the worker has stopped: everything it held goes on elsewhere
    )
    WORKER_LOST = "worker_lost"  # its lease lapsed


class QueueReason(StrEnum):
    """Reasons for a run without a slot to queue again."""

    WAKE_TIME = "wake_time"  # the time it waited for has come
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"  # nobody answered in time
