"""`python -m tests.network_host MODULE:FUNCTION`: calls a function where every address of the world is this machine's.

In a network namespace of its own all addresses are routed to its loopback interface, the only one: forbidden targets
really listen, a leak would really reach one, and no packet leaves the machine. What came is counted. The function gets
the targets and what was given as JSON, and runs in the main thread; what it returns is printed with the counts.
"""

import ctypes
import importlib
import json
import os
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isolane.sandbox.clone import NEWNET, NEWUSER, map_user
from isolane.sandbox.loopback import raise_loopback
from isolane.sandbox.syscalls import SetupError
from tests.forbidden_targets import ForbiddenTargets

_LOOPBACK = 1  # the number of the interface, in every namespace
_RTM_NEWROUTE, _REQUEST, _ACK, _CREATE, _ERROR = 24, 1, 4, 0x400, 2
_TABLE_LOCAL, _PROTOCOL_BOOT, _SCOPE_HOST, _TYPE_LOCAL, _RTA_OIF = 255, 3, 254, 2, 4

Function = Callable[[ForbiddenTargets, Any], Any]


def enter() -> None:
    """Enter a new network namespace, and make all addresses those of its loopback interface."""
    user, group = os.geteuid(), os.getegid()
    if ctypes.CDLL(None, use_errno=True).unshare(NEWNET if user == 0 else NEWNET | NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    if user != 0:
        map_user("self", inside=user, outside_user=user, outside_group=group)
    raise_loopback()
    Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").write_text("0")
    for family in (socket.AF_INET, socket.AF_INET6):
        _route_all_to_loopback(family)


def _route_all_to_loopback(family: socket.AddressFamily) -> None:
    """Do as `ip route add local default dev lo` does, which not every machine has."""
    route = struct.pack(
        "8BI", family, 0, 0, 0, _TABLE_LOCAL, _PROTOCOL_BOOT, _SCOPE_HOST, _TYPE_LOCAL, 0
    )
    body = route + struct.pack("HHI", 8, _RTA_OIF, _LOOPBACK)
    flags = _REQUEST | _ACK | _CREATE
    header = struct.pack("IHHII", 16 + len(body), _RTM_NEWROUTE, flags, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.sendto(header + body, (0, 0))
        answer = kernel.recv(4096)
    _, kind, _, _, _, code = struct.unpack_from("IHHIIi", answer)
    if kind != _ERROR or code != 0:
        raise OSError(-code, f"routing all addresses to loopback: {os.strerror(-code)}")


def _named(function: str) -> Function:
    module, _, name = function.partition(":")
    found: Function = getattr(importlib.import_module(module), name)
    return found


def main() -> None:
    """Enter, listen, call, print."""
    try:
        enter()
    except (OSError, SetupError) as error:
        json.dump({"unavailable": str(error)}, sys.stdout)
        return
    given = json.load(sys.stdin)
    with ForbiddenTargets().listening() as targets:
        returned = _named(sys.argv[1])(targets, given)
        told = {"returned": returned, **targets.told()}
    interfaces = [name for _, name in socket.if_nameindex()]
    json.dump(told | {"interfaces": interfaces}, sys.stdout)


if __name__ == "__main__":
    main()
