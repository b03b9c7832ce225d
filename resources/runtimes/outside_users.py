"""The users of sandboxes outside of them, where the worker is root and so may choose.

Timing: the users of this machine or container are read once.
Model: any thread; the decisions are pure.
Guarantee: one user for each slot of each worker, as long as there are enough; never one of an account.
Failure: RuntimeStartError where this namespace has too few users.
"""

import functools
import grp
import os
import pwd
from collections.abc import Collection, Iterator
from pathlib import Path

from resources.runtimes.base import RuntimeStartError

_FAR_FROM_ACCOUNTS = range(0x40000000, 0x44000000)
_FIRST_ORDINARY = 1000
_NOBODY = (65534, 65535)  # the latter is no user in 16 bits
_USERS_PER_WORKER = 1 << 8


def outside_user(slot: int) -> int | None:
    """Return the user of a sandbox outside of it; None if it must be that of the worker, an ordinary one."""
    if os.geteuid() != 0:
        return None
    return user_of(_users_here(), worker=os.getpid(), slot=slot)


def users_for_sandboxes(uid_map: str, gid_map: str, *, accounts: Collection[int]) -> range:
    """Return the ids for sandboxes, of both users and groups, given the maps of a namespace. Pure.

    On a whole machine they are far from those of accounts; in a container they are the widest gap between these.
    """
    shared = [
        range(max(one.start, other.start), min(one.stop, other.stop))
        for one in _mapped(uid_map)
        for other in _mapped(gid_map)
    ]
    for ids in shared:
        if ids.start <= _FAR_FROM_ACCOUNTS.start and ids.stop >= _FAR_FROM_ACCOUNTS.stop:
            return _FAR_FROM_ACCOUNTS
    gaps = [gap for ids in shared for gap in _gaps(ids, {*accounts, *_NOBODY})]
    found = max(gaps, key=len, default=range(0))
    if len(found) < _USERS_PER_WORKER:
        raise RuntimeStartError(
            f"there are no users for sandboxes: beside its accounts this container has {len(found)} in a row, and"
            f" {_USERS_PER_WORKER} are needed (/proc/self/uid_map and gid_map). Map 65536 users and groups into it,"
            " or run the worker as an ordinary user"
        )
    return found


def user_of(users: range, *, worker: int, slot: int) -> int:
    """Return one of these ids, counted from the last one: accounts are given the first. Pure."""
    workers = len(users) // _USERS_PER_WORKER
    place = worker % workers * _USERS_PER_WORKER + slot % _USERS_PER_WORKER
    return users[-1 - place]


@functools.cache
def _users_here() -> range:
    uid_map, gid_map = (
        Path(f"/proc/self/{name}").read_text("ascii") for name in ("uid_map", "gid_map")
    )
    accounts = {each.pw_uid for each in pwd.getpwall()} | {each.gr_gid for each in grp.getgrall()}
    return users_for_sandboxes(uid_map, gid_map, accounts=accounts)


def _mapped(text: str) -> list[range]:
    """Return the ids that a map gives its namespace; neighbours are one range."""
    found: list[range] = []
    for first, _, count in sorted(
        [int(word) for word in line.split()] for line in text.splitlines()
    ):
        if found and found[-1].stop == first:
            found[-1] = range(found[-1].start, first + count)
        else:
            found.append(range(first, first + count))
    return found


def _gaps(ids: range, taken: Collection[int]) -> Iterator[range]:
    """Yield the ordinary ids between those that are taken."""
    start = max(ids.start, _FIRST_ORDINARY)
    for each in sorted(taken):
        if start <= each < ids.stop:
            yield range(start, each)
            start = each + 1
    yield range(start, max(ids.stop, start))
