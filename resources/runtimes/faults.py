"""Faults during a teardown: logged, and kept from stopping the rest.

Timing: none of its own.
Model: sync, any thread.
Guarantee: best-effort.
Failure: logged, never raised.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)


@contextmanager
def reported(what: str) -> Iterator[None]:
    """Log any exception of the block as a fault of the platform, and go on."""
    try:
        yield
    except Exception:
        logger.exception("%s", what, extra={"event": "TEARDOWN_FAULT"})
