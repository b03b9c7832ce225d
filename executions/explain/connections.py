"""Sentences about connections of a run through the gate. Pure."""

from collections.abc import Mapping
from typing import Any

from executions.explain.formatting import duration, number_in, size
from resources.gate.record import ConnectionReason, ConnectionRecord

REASONS: Mapping[str, str] = {
    ConnectionReason.CLOSED: "one side closed it",
    ConnectionReason.RESET: "it was broken off when the run had left",
    ConnectionReason.SERVER_RESET: "the remote server broke it off",
    ConnectionReason.RUN_ENDED: "the run's runtime ended",
    ConnectionReason.IDLE: "nothing was sent for as long as the limit idle_seconds of blueprint or quota allows",
    ConnectionReason.BYTES: "the run has sent and received all that the limit network_mb of blueprint or quota allows",
    ConnectionReason.NOT_DECLARED: "no resource of this run has this name",
    ConnectionReason.ADDRESS_REFUSED: "its address is not allowed",
    ConnectionReason.CONNECTIONS: "the run has as many open as the limit connections of blueprint or quota allows",
    ConnectionReason.UNREACHABLE: "the remote server could not be reached",
    ConnectionReason.CERTIFICATE: "the remote server's certificate is not one of the definition's host by its ca",
    ConnectionReason.LOGIN: "the remote server refused the login",
    ConnectionReason.NOT_ALLOWED: "the run asked for something that this resource does not allow",
    ConnectionReason.PROTOCOL: "one side does not speak the resource's protocol",
}


def describe_record(record: ConnectionRecord) -> str:
    """Describe a refusal or an end for the message of the step that met it."""
    data = {
        "host": record.host,
        "port": record.port,
        "definition": record.definition,
        "reason": record.reason,
    }
    return (describe_refused if record.is_refusal else describe_closed)("", data)


def describe_closed(_: str, data: Mapping[str, Any]) -> str:
    """Describe a connection that has ended; the ordinary reason is not worth a word."""
    after = number_in(data, "ms")
    lasted = "" if after is None else f" after {duration(after / 1000)}"
    reason = data.get("reason", ConnectionReason.CLOSED)
    since = "" if reason == ConnectionReason.CLOSED else f", since {REASONS.get(reason, reason)}"
    return f"{_connection(data)} ended{lasted}{since}{_traffic(data)}"


def describe_refused(_: str, data: Mapping[str, Any]) -> str:
    """Describe a connection that was not made, or a name that was not found."""
    reason = data.get("reason")
    why = f": {REASONS.get(reason, reason)}" if reason else ""
    return f"{_connection(data)} was refused{why}"


def describe_omitted(_: str, data: Mapping[str, Any]) -> str:
    """Describe the connections that were only counted."""
    counts = ((number_in(data, "closed"), "connection"), (number_in(data, "refused"), "refusal"))
    known = [f"{count:.0f} {noun}{'' if count == 1 else 's'}" for count, noun in counts if count]
    carried = _traffic(data) if number_in(data, "closed") else ""
    return f"Not listed one by one: {' and '.join(known) or 'some connections'} more{carried}"


def _traffic(data: Mapping[str, Any]) -> str:
    parts = [
        f"{size(count)} {name}"
        for name in ("sent", "received")
        if (count := number_in(data, name)) is not None
    ]
    return f": {', '.join(parts)}" if parts else ""


def _connection(data: Mapping[str, Any]) -> str:
    """Name a connection; port 0 stands for a name that was only looked up."""
    host, port, definition = data.get("host"), data.get("port"), data.get("definition")
    of = f" ({definition})" if definition else ""
    if port == 0:
        return f"A lookup{f' of {host}' if host else ''}{of}"
    if not host:
        return f"A connection{f' to port {port}' if port else ''}{of}"
    return f"A connection to {host}{f':{port}' if port else ''}{of}"
