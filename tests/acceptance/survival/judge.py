"""The effects of a test's steps, as they tell them."""

import json
import os
import select
import socket
import threading
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from executions.models import Execution, ExecutionEvent
from tenants.scope import TenantRef, tenant_scope
from tests.acceptance.survival.nodes import SOCKET


class Mark(NamedTuple):
    """One beginning or end of an effect."""

    what: str
    execution_id: str
    step: str
    epoch: int
    attempt: int
    at: float


class Judge:
    """A socket that steps tell their effects; a message that was sent is kept, whatever becomes of its sender."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.chmod(0o755)  # sandboxes are other users
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        opened = os.open(folder, os.O_PATH)  # since the path of a socket must be short
        self._sock.bind(f"/proc/self/fd/{opened}/{SOCKET}")
        os.close(opened)
        (folder / SOCKET).chmod(0o777)
        self._lock = threading.Lock()
        self._heard: list[Mark] = []
        self._is_closed = False
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def marks(self) -> list[Mark]:
        """All of them, in their order."""
        self._hear()
        return list(self._heard)

    def close(self) -> None:
        """Hear no more."""
        self._is_closed = True
        self._thread.join()
        self._sock.close()

    def _listen(self) -> None:
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        while not self._is_closed:
            if poll.poll(
                100
            ):  # few messages fit in, so nobody may have to wait for a test that looks
                self._hear()

    def _hear(self) -> None:
        with self._lock:
            while True:
                try:
                    message = self._sock.recv(4096, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    return
                self._heard.append(Mark(*json.loads(message)))

    def starts(self, run: Execution) -> "Counter[str]":
        """Count the starts of each step of a run."""
        return Counter(
            mark.step
            for mark in self.marks()
            if mark.what == "start" and mark.execution_id == str(run.pk)
        )

    def epochs(self, run: Execution, step: str) -> list[int]:
        """The placements in which a step has begun."""
        return [
            mark.epoch
            for mark in self.marks()
            if (mark.what, mark.execution_id, mark.step) == ("start", str(run.pk), step)
        ]

    def keys(self) -> int:
        """Count the effects at the remote server that honours keys: each key counts once."""
        return len({mark.what for mark in self.marks() if mark.what.startswith("key ")})


def story(tenant: TenantRef, run: Execution) -> list[str]:
    """The kinds of a run's events."""
    with tenant_scope(tenant):
        found = ExecutionEvent.objects.filter(execution=run).order_by("sequence")
        return list(found.values_list("kind", flat=True))
