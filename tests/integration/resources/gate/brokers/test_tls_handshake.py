"""resources.gate.brokers.transport and tls_handshake, over a pair of sockets."""

import asyncio
import socket
import ssl
import threading
from typing import Any

import pytest

from resources.gate.brokers import tls_handshake
from resources.gate.brokers.http import HttpBroker
from resources.gate.brokers.http_login import HttpLogin
from resources.gate.brokers.share import Share
from resources.gate.brokers.streams import Proof, tls_context
from resources.gate.brokers.tls_handshake import BYTES_MAX, TlsClient
from resources.gate.brokers.transport import open_transport
from tests.integration.resources.gate.brokers.tls_ends import (
    HOST,
    Ends,
    Notes,
    run,
    uncounted,
)
from tests.integration.resources.gate.brokers.tls_peer import stale_descriptors
from tests.tls_certificates import TestAuthority


def test_no_server_chooses_how_long_a_key_exchange_takes(authority: TestAuthority) -> None:
    login = HttpLogin(
        scheme="https", host=HOST, port=443, header="Authorization", value="x", ca=authority.pem
    )
    ours = HttpBroker(login, Share())._tls
    assert ours is not None
    for context in (ours.context, tls_context(Proof.NAME, authority.pem)):
        names = {one["name"] for one in context.get_ciphers()}
        assert {name for name in names if name.startswith("DHE-")} == set()
        assert names >= {"TLS_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"}


def test_a_handshake_has_few_bytes(authority: TestAuthority, tmp_path: Any) -> None:
    certificate = authority.issue(HOST)
    chain = tmp_path / "chain.pem"
    own = certificate.certfile.read_bytes()
    chain.write_bytes(own * (BYTES_MAX // len(ssl.PEM_cert_to_DER_cert(own.decode())) + 1))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, certificate.keyfile)

    async def shake(ends: Ends) -> None:
        with pytest.raises(ssl.SSLError) as raised:
            await open_transport(ends.ours, Notes(), ends.tls, charge=uncounted, close_seconds=1)
        assert raised.value.reason == "EXCESSIVE_MESSAGE_SIZE"
        assert f"more than {BYTES_MAX // 1024} KiB" in str(raised.value)

    with Ends(authority, lambda _: None) as ends:
        ends._peer._tls.context = context
        run(shake(ends))


def test_a_server_that_leaves_during_the_handshake_is_an_error(
    authority: TestAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def shake(ends: Ends) -> None:
        with pytest.raises(ConnectionResetError, match="during the handshake"):
            await open_transport(ends.ours, Notes(), ends.tls, charge=uncounted, close_seconds=1)

    def leave() -> None:
        peer.sock.recv(10)
        peer.sock.shutdown(socket.SHUT_WR)

    ends = Ends(authority, lambda _: None)
    peer = ends._peer
    monkeypatch.setattr(peer, "shake_hands", leave)
    with ends:
        run(shake(ends))


def test_the_server_is_told_why_it_is_not_trusted(
    authority: TestAuthority, other_authority: TestAuthority
) -> None:
    async def shake(ends: Ends) -> None:
        with pytest.raises(ssl.SSLCertVerificationError):
            await open_transport(ends.ours, Notes(), tls, charge=uncounted, close_seconds=1)

    context = ssl.create_default_context(cadata=other_authority.pem)
    tls = TlsClient(context=context, host=HOST, share=Share())
    with Ends(authority, lambda _: None) as ends:
        run(shake(ends))
    assert "UNKNOWN_CA" in str(ends.error)


def test_a_handshake_that_is_given_up_in_a_thread_leaves_nothing(
    authority: TestAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_verifying, may_go_on = threading.Event(), threading.Event()

    def step(tls: ssl.SSLObject) -> bool:
        is_verifying.set()
        return may_go_on.wait(10) and before(tls)

    async def give_up(ends: Ends) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await open_transport(
                    ends.ours, Notes(), ends.tls, charge=uncounted, close_seconds=1
                )
        assert is_verifying.is_set()
        assert (ends.ours.fileno(), stale_descriptors(asyncio.get_running_loop())) == (-1, [])
        may_go_on.set()
        assert await ends.tls.share.in_thread(lambda: 7) == 7

    before = tls_handshake._step
    monkeypatch.setattr(tls_handshake, "_step", step)
    with Ends(authority, lambda _: None) as ends:
        run(give_up(ends))


@pytest.mark.parametrize("turns", range(1, 5))
def test_an_opening_that_is_cancelled_leaves_nothing(authority: TestAuthority, turns: int) -> None:
    async def cancel() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            opening = asyncio.create_task(
                open_transport(ours, Notes(), None, charge=uncounted, close_seconds=1)
            )
            for _ in range(turns):
                await asyncio.sleep(0)
            if opening.cancel():
                with pytest.raises(asyncio.CancelledError):
                    await opening
            else:
                opening.result().abort()
            await asyncio.sleep(0.01)
            assert (ours.fileno(), stale_descriptors(asyncio.get_running_loop())) == (-1, [])

    run(cancel())
