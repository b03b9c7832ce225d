"""isolane.gate.dns: answers that any resolver takes, whatever the query is."""

import socket
import struct
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolane.gate.dns import reply_to
from isolane.gate.routes import LoopbackPair

PAIR = LoopbackPair("127.78.0.1", "fd69:736f:6c61:6e65::4e:1")
NAMES = {"api.example.com": PAIR}
A, NS, CNAME, PTR, MX, TXT, AAAA, ANY = 1, 2, 5, 12, 15, 16, 28, 255
INTERNET, CHAOS = 1, 3
NO_ERROR, FORMAT_ERROR, NO_SUCH_NAME = 0, 1, 3
EDNS = b"\0" + struct.pack("!HHIH", 41, 1232, 0, 0)


def encoded(name: str) -> bytes:
    labels = name.encode("latin-1").split(b".") if name else []
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def a_query(
    name: str, kind: int = A, *, family: int = INTERNET, flags: int = 0x0100, rest: bytes = b""
) -> bytes:
    header = struct.pack("!6H", 4711, flags, 1, 0, 0, bool(rest))
    return header + encoded(name) + struct.pack("!2H", kind, family) + rest


def answer(query: bytes, *, has_v6: bool = True) -> tuple[int, list[bytes], str]:
    """Return the code, the addresses and the refused name of an answer that is well-formed."""
    reply = reply_to(query, NAMES, has_v6=has_v6)
    assert reply is not None
    number, flags, questions, answers, authorities, more = struct.unpack_from("!6H", reply.data)
    assert number == struct.unpack_from("!H", query)[0]
    assert flags & 0x8000
    assert (authorities, more) == (0, 0)
    at = 12
    if questions:
        end = reply.data.index(0, 12) + 5
        assert reply.data[12:end] == query[12:end]  # as it was asked, upper case and all
        at = end
    found = []
    for _ in range(answers):
        pointer, kind, family, seconds, size = struct.unpack_from("!3HIH", reply.data, at)
        assert (pointer, family) == (0xC00C, INTERNET)
        assert seconds > 0
        assert size == {A: 4, AAAA: 16}[kind]
        found.append(reply.data[at + 12 : at + 12 + size])
        at += 12 + size
    assert at == len(reply.data)
    return flags & 0xF, found, reply.refused_name


V4, V6 = socket.inet_aton(PAIR.v4), socket.inet_pton(socket.AF_INET6, PAIR.v6)


@pytest.mark.parametrize(
    ("kind", "found"),
    [(A, [V4]), (AAAA, [V6]), (MX, []), (TXT, []), (NS, []), (CNAME, []), (ANY, []), (65, [])],
)
def test_a_name_has_its_two_addresses_and_no_other_record(kind: int, found: list[bytes]) -> None:
    assert answer(a_query("api.example.com", kind)) == (NO_ERROR, found, "")


def test_without_ipv6_a_name_has_one_address() -> None:
    assert answer(a_query("api.example.com", AAAA), has_v6=False) == (NO_ERROR, [], "")
    assert answer(a_query("api.example.com", A), has_v6=False) == (NO_ERROR, [V4], "")


def test_case_does_not_matter_and_is_kept() -> None:
    assert answer(a_query("API.eXample.Com")) == (NO_ERROR, [V4], "")


@pytest.mark.parametrize("rest", [EDNS, b"trailing bytes \xff"])
def test_what_follows_the_question_is_not_read(rest: bytes) -> None:
    assert answer(a_query("api.example.com", rest=rest)) == (NO_ERROR, [V4], "")


@pytest.mark.parametrize(
    "name",
    ["example.com", "x.api.example.com", "api.example.comm", "evil.example.com", "localhost"],
)
def test_no_other_name_exists(name: str) -> None:
    assert answer(a_query(name)) == (NO_SUCH_NAME, [], name)


@pytest.mark.parametrize(
    ("address", "is_own"),
    [
        ("127.0.0.1", True), ("127.77.0.1", True), ("::1", True), (PAIR.v6, True),
        ("10.66.0.1", False), ("169.254.169.254", False), ("fd69:736f:6c61:6e66::1", False), ("::2", False),
    ],
)  # fmt: skip
def test_names_of_the_sandboxs_own_addresses_are_not_reported(address: str, is_own: bool) -> None:
    name = ip_address(address).reverse_pointer
    assert answer(a_query(name, PTR)) == (NO_SUCH_NAME, [], "" if is_own else name)


def test_names_exist_in_the_internet_only() -> None:
    assert answer(a_query("api.example.com", family=CHAOS))[:2] == (NO_SUCH_NAME, [])


def test_the_root_is_no_name_that_is_reported() -> None:
    assert answer(a_query("")) == (NO_SUCH_NAME, [], "")


def test_bytes_that_are_no_ascii_are_reported_replaced() -> None:
    assert answer(a_query("\xe9vil.example.com"))[2] == "\N{REPLACEMENT CHARACTER}vil.example.com"


HEADER = struct.pack("!6H", 1, 0x0100, 1, 0, 0, 0)
QUESTION = struct.pack("!2H", A, INTERNET)


@pytest.mark.parametrize(
    "query",
    [
        HEADER,
        HEADER + b"\x03ap",
        HEADER + b"\xc0\x0c" + QUESTION,  # a name that points to itself
        HEADER + b"\x03api\xc0\x0c" + QUESTION,
        HEADER + b"\x40" + b"a" * 64 + b"\0" + QUESTION,
        HEADER + (b"\x3f" + b"a" * 63) * 4 + b"\0" + QUESTION,
        HEADER + encoded("api.example.com") + b"\0\1\0",
        struct.pack("!6H", 1, 0, 0, 0, 0, 0) + encoded("api.example.com") + QUESTION,
        struct.pack("!6H", 1, 0, 2, 0, 0, 0) + encoded("api.example.com") + QUESTION,
    ],
)  # fmt: skip
def test_a_malformed_query_is_told_so(query: bytes) -> None:
    assert answer(query) == (FORMAT_ERROR, [], "")


@pytest.mark.parametrize(
    "query",
    [
        b"",
        b"\0" * 11,
        a_query("api.example.com", flags=0x8180),  # an answer, which must never be answered
        a_query("api.example.com", flags=0x2800),  # an update
    ],
)
def test_what_is_no_query_is_not_answered(query: bytes) -> None:
    assert reply_to(query, NAMES) is None


bits = st.one_of(
    st.binary(max_size=80), st.just(encoded("api.example.com")), st.just(QUESTION), st.just(HEADER)
)


@given(st.lists(bits, max_size=5).map(b"".join))
def test_any_bytes_get_a_short_answer_or_none(query: bytes) -> None:
    reply = reply_to(query, NAMES)
    assert reply is None or 12 <= len(reply.data) <= max(len(query) + 28, 12)
    assert reply is None or len(reply.refused_name) <= 255
