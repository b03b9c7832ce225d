"""Streams to a remote server over a connected socket, in clear or with TLS.

Timing: as long as the block; closing takes seconds at most.
Model: asyncio.
Guarantee: no byte is sent before the server has proved what `Proof` demands; the socket is closed at the end.
Failure: ssl.SSLCertVerificationError for the proof, other OSErrors; an error in the block drops what was not sent.
"""

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator
from enum import StrEnum
from functools import lru_cache
from socket import socket

import certifi

from resources.gate.brokers.base import Charge
from resources.gate.brokers.relay import PIECE
from resources.gate.brokers.tls_handshake import TlsClient, without_slow_ciphers
from resources.gate.brokers.transport import open_transport

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_CLOSE_SECONDS = 5.0


class Proof(StrEnum):
    """The extent of what a server's certificate must prove."""

    NOTHING = "nothing"
    CHAIN = "chain"  # it was issued by a trusted authority, for whatever name
    NAME = "name"  # it was issued by a trusted authority for this host


@lru_cache(maxsize=64)
def tls_context(proof: Proof, ca: str) -> ssl.SSLContext:
    """Return the context that trusts the authorities in `ca`, or the public ones if it is empty."""
    context = ssl.create_default_context(cafile=None if ca else certifi.where(), cadata=ca or None)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.check_hostname = proof is Proof.NAME
    if proof is Proof.NOTHING:
        context.verify_mode = ssl.CERT_NONE
    return without_slow_ciphers(context)


@contextlib.asynccontextmanager
async def opened(
    connected: socket, tls: TlsClient | None, charge: Charge
) -> AsyncIterator[Streams]:
    """Yield the streams of a connected socket, which belongs to this block from now on."""
    streams = await _open(connected, tls, charge)
    _, writer = streams
    try:
        yield streams
    except BaseException:
        writer.transport.abort()
        raise
    finally:
        await _close(writer)


async def _open(connected: socket, tls: TlsClient | None, charge: Charge) -> Streams:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=PIECE, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport = await open_transport(
        connected, protocol, tls, charge=charge, close_seconds=_CLOSE_SECONDS
    )
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close it after its last byte; a server that does not read is given up."""
    writer.close()
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await writer.wait_closed()
    except OSError:  # also TimeoutError
        writer.transport.abort()
    except BaseException:  # the run is over, and nobody would be there to see its end
        writer.transport.abort()
        raise


def cause(error: OSError) -> str:
    """Return why a connection failed, without addresses."""
    if isinstance(error, ssl.SSLError):
        return f"TLS was not agreed on ({error.reason or 'the server ended it'})"
    if error.errno:
        return os.strerror(error.errno)
    return "it did not answer in time" if isinstance(error, TimeoutError) else str(error)
