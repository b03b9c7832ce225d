"""resources.gate.brokers.postgres_messages: what a run sends first is read with suspicion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.gate.brokers.postgres_messages import (
    FIRST_MAX,
    CancelPacket,
    EncryptionPacket,
    Malformed,
    StartupPacket,
    cancel_packet,
    error_response,
    error_text,
    first_length,
    first_packet,
    negotiation,
    startup_packet,
    tls_packet,
)

TEXT = st.binary(max_size=20).map(lambda text: text.replace(b"\0", b""))
PARAMETERS = st.lists(st.tuples(TEXT.filter(bool), TEXT), max_size=5).map(tuple)


def body(packet: bytes) -> bytes:
    assert first_length(packet[:4]) == len(packet) - 4
    return packet[4:]


@given(minor=st.integers(0, 0xFFFF), parameters=PARAMETERS)
def test_a_startup_packet_is_read_as_it_was_written(
    minor: int, parameters: tuple[tuple[bytes, bytes], ...]
) -> None:
    packet = first_packet(body(startup_packet(minor, parameters)))
    assert packet == StartupPacket(minor=minor, parameters=parameters)


@given(key=st.binary(min_size=8, max_size=260))
def test_a_cancel_request_is_read_as_it_was_written(key: bytes) -> None:
    assert first_packet(body(cancel_packet(key))) == CancelPacket(key=key)


def test_both_kinds_of_encryption_are_asked_for() -> None:
    assert tls_packet() == b"\0\0\0\x08\x04\xd2\x16\x2f"
    assert first_packet(body(tls_packet())) == EncryptionPacket()
    assert first_packet(b"\x04\xd2\x16\x30") == EncryptionPacket()


@given(
    head=st.sampled_from([b"", b"\0\3\0\0", b"\0\3\0\2", b"\4\xd2\x16\x2e", b"\4\xd2\x16\x2f"]),
    rest=st.binary(max_size=300),
)
def test_any_bytes_are_a_packet_or_malformed(head: bytes, rest: bytes) -> None:
    try:
        packet = first_packet(head + rest)
    except Malformed:
        return
    if isinstance(packet, StartupPacket):
        assert body(startup_packet(packet.minor, packet.parameters)) == head + rest


@pytest.mark.parametrize("length", [0, 7, FIRST_MAX + 1, 0x16030100])
def test_a_length_out_of_bounds_is_malformed(length: int) -> None:
    with pytest.raises(Malformed, match="does not begin with a startup packet"):
        first_length(length.to_bytes(4, "big"))


@pytest.mark.parametrize(
    "packet",
    [
        b"\0\3\0\0",
        b"\0\3\0\0user\0ada\0",
        b"\0\3\0\0user\0\0",
        b"\0\3\0\0\0ada\0\0",
        b"\0\2\0\0\0",
        b"\4\xd2\x16\x2e1234567",
        b"\4\xd2\x16\x2e" + bytes(261),
        b"\4\xd2\x16\x2fx",
    ],
)
def test_what_is_not_well_formed_is_malformed(packet: bytes) -> None:
    with pytest.raises(Malformed):
        first_packet(packet)


def test_an_error_has_all_that_clients_read() -> None:
    error = error_response("28000", "no\0 way", "out")
    assert int.from_bytes(error[1:5], "big") == len(error) - 1
    assert error[5:] == b"SFATAL\0VFATAL\0C28000\0Mno way\0Hout\0\0"
    assert error_text(error[5:]) == "28000 no way"


@given(st.binary(max_size=2000))
def test_a_servers_error_is_one_line_whatever_it_is(error: bytes) -> None:
    assert len(error_text(error)) <= 500
    assert "\n" not in error_text(error)


def test_a_negotiation_names_version_and_options() -> None:
    assert negotiation(2, [b"_pq_.x"]) == b"v\0\0\0\x13\0\3\0\2\0\0\0\1_pq_.x\0"
