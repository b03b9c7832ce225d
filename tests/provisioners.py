"""Provisioners beside a test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tenants.provisioner import Provisioner

STOP_SECONDS = 20


@contextmanager
def running_provisioner() -> Iterator[None]:
    """One in a thread of this process, with a connection of its own."""
    provisioner = Provisioner()
    thread = threading.Thread(target=provisioner.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        provisioner.stop()
        thread.join(timeout=STOP_SECONDS)
        assert not thread.is_alive()
