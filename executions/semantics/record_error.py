"""The errors of a resource record: codes for the platform's own reasons, free text for all others. Pure."""

from enum import StrEnum


class RecordErrorCode(StrEnum):
    """The platform's own reason for an error; the sentence is made when the record is shown."""

    NONE = ""  # the text beside it, if any, is the message of a runtime or a remote server
    NOT_ISSUED = "not_issued"  # planned, and certainly never made
    SEE_WORKER_LOG = "see_worker_log"  # an unexpected exception, whose text may hold secrets
    ABANDONED = "abandoned"  # the text beside it names the actor


def error_text(code: str, error: str) -> str:
    """Return an error as people read it."""
    match code:
        case RecordErrorCode.NOT_ISSUED:
            return "not issued"
        case RecordErrorCode.SEE_WORKER_LOG:
            return "the worker's log says why"
        case RecordErrorCode.ABANDONED:
            return f"Given up by {error}; it may still exist."
        case _:
            return error
