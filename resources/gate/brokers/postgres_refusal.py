"""The refusal of a run's connection to PostgreSQL, with the error that its client is sent. Pure."""

from typing import Self

from resources.gate.brokers.postgres_messages import error_response, error_text, message
from resources.gate.record import ConnectionEnded, ConnectionReason


class PostgresRefusal(ConnectionEnded):
    """A connection that cannot go on, and the ErrorResponse for the client; names no secret."""

    def __init__(self, reason: ConnectionReason, text: str, answer: bytes) -> None:
        super().__init__(reason, text)
        self.answer = answer

    @classmethod
    def because(cls, reason: ConnectionReason, sqlstate: str, text: str, way_out: str) -> Self:
        """Return a refusal of the broker's own."""
        return cls(reason, f"{text}: {way_out}", error_response(sqlstate, text, way_out))

    @classmethod
    def by_server(cls, place: str, body: bytes) -> Self:
        """Return the refusal of a login by the server, from the body of its ErrorResponse."""
        text = f"{place} refused the login: {error_text(body)}"
        return cls(ConnectionReason.LOGIN, text, message(b"E", body))
