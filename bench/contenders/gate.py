"""A backlog in Redis that no worker sees until the gate opens: a list under another name, which is renamed."""

import redis


class Gate:
    """The gate of one queue. Kombu keeps a queue as a list of that name; renaming a list wakes a waiting worker."""

    def __init__(self, url: str, queue: str) -> None:
        self._redis = redis.Redis.from_url(url)
        self._queue = queue
        self.name = f"{queue}.gate"

    def open(self) -> None:
        """Pass all messages of the gate to the queue."""
        self._redis.rename(self.name, self._queue)
