"""A backlog in Redis that no worker sees until the gate opens: a list under another name, renamed at once."""

import redis


class Gate:
    """Kombu keeps a queue as a list of the queue's name; a worker that waits for it wakes up at the renaming."""

    def __init__(self, url: str, queue: str) -> None:
        self._redis = redis.Redis.from_url(url)
        self._queue = queue
        self.name = f"{queue}.gate"

    def open(self) -> None:
        """Hand over all that was sent to the gate."""
        self._redis.rename(self.name, self._queue)
