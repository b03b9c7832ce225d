"""A request that the gate answers itself, before it ends the connection."""

from http import HTTPStatus

from isolane.providers.proxy_status import NOT_CONNECTED, PROXY_STATUS, proxy_status
from resources.gate.record import ConnectionEnded, ConnectionReason

_ERRORS = dict(
    zip(
        (
            ConnectionReason.UNREACHABLE,
            ConnectionReason.CERTIFICATE,
            ConnectionReason.ADDRESS_REFUSED,
        ),
        NOT_CONNECTED,
        strict=True,
    )
)


class HttpRefused(ConnectionEnded):
    """A connection that cannot go on, and the answer that says so to the run, unless another one has begun."""

    def __init__(
        self,
        reason: ConnectionReason,
        status: int,
        answer: str,
        *,
        message: str = "",
    ) -> None:
        super().__init__(reason, message or answer)
        self.status = status
        self.answer = answer

    @property
    def proxy_status(self) -> list[tuple[bytes, bytes]]:
        """Return the header that tells a provider that the remote server has not answered (RFC 9209)."""
        if self.status != HTTPStatus.BAD_GATEWAY:
            return []
        error = _ERRORS.get(self.reason, "http_protocol_error")
        return [(PROXY_STATUS.encode(), proxy_status(error, self.answer).encode())]
