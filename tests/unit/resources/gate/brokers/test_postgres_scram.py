"""resources.gate.brokers.postgres_scram: the client's side, against a server that is written apart from it."""

import pytest

from resources.gate.brokers.postgres_scram import ScramError, ScramExchange, prepared
from tests.scram_server import ScramServer


def exchange(password: str, *, binding: bytes = b"", is_plus: bool = False) -> ScramExchange:
    return ScramExchange(prepared(password), nonce="client", binding=binding, is_plus=is_plus)


@pytest.mark.parametrize(
    ("header", "binding", "is_plus"),
    [
        (b"n,,", b"", False),
        (b"y,,", b"hash", False),
        (b"p=tls-server-end-point,,", b"hash", True),
    ],
)
def test_both_sides_prove_that_they_know_the_password(
    header: bytes, binding: bytes, is_plus: bool
) -> None:
    client = exchange("pencil", binding=binding, is_plus=is_plus)
    server = ScramServer(b"pencil", header=header, binding=binding if is_plus else b"")
    client.finish(server.final(client.final(server.first(client.first))))
    assert client.is_proved


def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    client = exchange("pencil")
    client.final(ScramServer(b"pencil", header=b"n,,").first(client.first))
    with pytest.raises(ScramError, match="does not know the password"):
        client.finish(b"v=" + b"A" * 43 + b"=")
    assert not client.is_proved


@pytest.mark.parametrize(
    "first",
    [b"", b"e=other-error", b"r=client1,s=c2FsdA==", b"r=other,s=c2FsdA==,i=1", b"r=client,s=c2FsdA==,i=1",
     b"r=client1,s=!,i=1", b"r=client1,s=c2FsdA==,i=0", b"r=client1,s=c2FsdA==,i=100001",
     b"r=client1,s=c2FsdA==,i=-1", b"s=c2FsdA==,r=client1,i=1"],
)  # fmt: skip
def test_a_first_message_that_breaks_the_mechanism_is_refused(first: bytes) -> None:
    with pytest.raises(ScramError):
        exchange("pencil").final(first)


@pytest.mark.parametrize("final", [b"", b"e=invalid-proof", b"v=!"])
def test_a_final_message_without_a_proof_is_refused(final: bytes) -> None:
    client = exchange("pencil")
    client.final(ScramServer(b"pencil", header=b"n,,").first(client.first))
    with pytest.raises(ScramError):
        client.finish(final)


def test_a_proof_before_its_time_is_refused() -> None:
    with pytest.raises(ScramError):
        exchange("pencil").finish(b"v=")


@pytest.mark.parametrize(
    ("password", "expected"),
    [
        ("pencil", "pencil"),
        ("I\u00adX", "IX"),  # the examples of RFC 4013
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("a\u00a0b", "a b"),
        ("\u0007", "\u0007"),  # prohibited: taken as it is, as PostgreSQL does
        ("\u06271", "\u06271"),
        ("key \U0001f511", "key \U0001f511"),  # younger than SASLprep
        ("\u00ad", "\u00ad"),
    ],
)
def test_a_password_is_prepared_as_the_server_did(password: str, expected: str) -> None:
    assert prepared(password) == expected.encode()
