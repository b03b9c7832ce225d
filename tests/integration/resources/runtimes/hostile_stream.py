"""A runner that answers one frame with whatever a test wants, over a real pair of pipes."""

import socket
import threading
from collections.abc import Callable, Sequence

from isolane.channel import Channel, channel_pair
from isolane.protocol import Run
from isolane.stream import Stream, StreamClosedError
from resources.runtimes.runner import Runner

# Returns the bytes of one piece, for the nonce of the RUN that came; of another frame it is empty.
Piece = Callable[[str], bytes]


class HostileRunner(Runner):
    """Sends pieces, then hangs up or says nothing more."""

    def __init__(self, pieces: Sequence[Piece], *, hangs_up: bool) -> None:
        super().__init__()
        ours, theirs = channel_pair()
        self.stream = Stream(ours)
        self._lifeline, far_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        far_end.close()  # nobody reports how it has ended
        self.kills = 0
        self.written = 0  # bytes
        self._pieces = pieces
        self._hangs_up = hangs_up
        self._killed = threading.Event()
        self._thread = threading.Thread(target=self._speak, args=(theirs,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it, and wait for its thread."""
        self._killed.set()
        self.stream.close()
        self._lifeline.close()
        self._thread.join(10)

    @property
    def is_lost(self) -> bool:
        """Return False: it was not ended for want of a keepalive."""
        return False

    def ended(self) -> bool:
        """Say whether it was killed; it says nothing of its own end."""
        return self._killed.is_set()

    def _end(self) -> None:
        self.kills += 1
        self._killed.set()

    def _ended(self) -> None:
        """Do nothing: it has no files."""

    def _speak(self, channel: Channel) -> None:
        stream = Stream(channel)
        try:
            asked = stream.receive(10)
            nonce = asked.nonce if isinstance(asked, Run) else ""
            for piece in self._pieces:
                self._write(channel, piece(nonce))
            if not self._hangs_up:
                self._killed.wait(10)
        except (StreamClosedError, ConnectionError):
            pass  # the worker has heard enough
        finally:
            stream.close()

    def _write(self, channel: Channel, data: bytes) -> None:
        rest = memoryview(data)
        while rest and not self._killed.is_set():
            try:
                sent = channel.send(rest)
                self.written += sent
                rest = rest[sent:]
            except BlockingIOError:
                self._killed.wait(0.001)
