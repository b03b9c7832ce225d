"""At most so many passwords are hashed at once, and few wait."""

import os
import threading

import pytest

from foundation.errors import TooManyAttempts
from tenants.logins.hashing import AT_ONCE, NICENESS, WAITING, HashingQueue
from tests.waiting import wait_for


def test_few_hash_few_wait_and_the_rest_is_refused_at_once() -> None:
    queue = HashingQueue(at_once=1, waiting=2)
    go_on = threading.Event()
    waiting: list[int] = []
    hashing: list[int] = []
    done: list[int] = []
    refused: list[int] = []

    def hash_() -> int:
        hashing.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        go_on.wait(10)
        return 1

    def login() -> None:
        try:
            with queue.place():
                waiting.append(1)
                done.append(queue.run(hash_))
        except TooManyAttempts as error:
            refused.append(error.retry_after_s)

    threads = [threading.Thread(target=login) for _ in range(50)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(refused) == 47 and len(waiting) == 3, "the queue to be full")
    wait_for(lambda: hashing, "the first to hash")
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert hashing == [max(own, NICENESS)]  # one, which gives way to all else
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(done) == 3
    with queue.place():
        pass


def test_the_platforms_own_leaves_processors_and_threads_to_others() -> None:
    assert AT_ONCE >= 1
    assert AT_ONCE + WAITING < 20 // 4  # of web's connections, those for strangers


def test_a_place_is_given_back_whatever_happens() -> None:
    queue = HashingQueue(at_once=1, waiting=0)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), queue.place():
            queue.run(lambda: 1 / 0)
