"""Answers to DNS queries: the addresses of a few names, and no others. Pure."""

import struct
from collections.abc import Mapping
from ipaddress import ip_address
from typing import NamedTuple

from isolane.gate.routes import LoopbackPair
from isolane.sandbox.loopback import LOOPBACK_V6

_HEADER = struct.Struct("!6H")
_QUESTION = struct.Struct("!2H")
_ANSWER = struct.Struct("!3HIH")
_RESPONSE, _RECURSION = 0x8080, 0x0100  # it is an answer, and names are looked up elsewhere, too
_NOT_A_QUERY = 0xF800  # an answer, or another operation
_FORMAT_ERROR, _NO_SUCH_NAME = 1, 3
_A, _AAAA, _INTERNET = 1, 28, 1
_LABEL_MAX, _NAME_MAX = 63, 255
_POINTER_TO_QUESTION = 0xC000 | _HEADER.size
_SECONDS = 30  # for which an answer may be kept
# Ends of names that programs ask for of the sandbox's own addresses, and that say nothing of what they want to reach.
_OWN_REVERSED = (
    ".127.in-addr.arpa",
    ip_address("::1").reverse_pointer,
    ip_address(LOOPBACK_V6.network_address).reverse_pointer[(128 - LOOPBACK_V6.prefixlen) // 2 :],
)


class DnsReply(NamedTuple):
    """The answer to a query, and the name if there is no such name here, and it is worth telling."""

    data: bytes
    refused_name: str = ""


def reply_to(
    query: bytes, names: Mapping[str, LoopbackPair], *, has_v6: bool = True
) -> DnsReply | None:
    """Return the answer; None for what is not a query. Nothing but the first question is read."""
    if len(query) < _HEADER.size:
        return None
    number, flags, questions, *_ = _HEADER.unpack_from(query)
    if flags & _NOT_A_QUERY:
        return None
    name, end = _name_at(query, _HEADER.size)
    if questions != 1 or end is None or len(query) < end + _QUESTION.size:
        return DnsReply(_headed(number, flags, _FORMAT_ERROR))
    kind, family = _QUESTION.unpack_from(query, end)
    question = query[_HEADER.size : end + _QUESTION.size]
    address = names.get(name)
    if address is None or family != _INTERNET:
        refused = "" if name.endswith(_OWN_REVERSED) else name
        return DnsReply(_headed(number, flags, _NO_SUCH_NAME, question), refused)
    found = _found(kind, address, has_v6=has_v6)
    return DnsReply(_headed(number, flags, 0, question, found))


def _name_at(query: bytes, start: int) -> tuple[str, int | None]:
    """Return a name in lower case and where it ends; no end if it is none. Pointers are not followed."""
    labels: list[str] = []
    position = start
    while position < len(query) and position - start < _NAME_MAX:
        length = query[position]
        position += 1
        if length == 0:
            return ".".join(labels), position
        if length > _LABEL_MAX or position + length > len(query):
            break
        labels.append(query[position : position + length].decode("ascii", "replace").lower())
        position += length
    return "", None


def _found(kind: int, address: LoopbackPair, *, has_v6: bool) -> bytes:
    """Return the record of this kind; a name has no others."""
    if kind == _A:
        data = ip_address(address.v4).packed
    elif kind == _AAAA and has_v6:
        data = ip_address(address.v6).packed
    else:
        return b""
    return _ANSWER.pack(_POINTER_TO_QUESTION, kind, _INTERNET, _SECONDS, len(data)) + data


def _headed(number: int, flags: int, code: int, question: bytes = b"", found: bytes = b"") -> bytes:
    asked = flags & _RECURSION
    counts = (bool(question), bool(found), 0, 0)
    return _HEADER.pack(number, _RESPONSE | asked | code, *counts) + question + found
