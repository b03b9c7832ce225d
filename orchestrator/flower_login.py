"""The login in front of everything that Flower serves, with a limit on tries.

Timing: request-time.
Model: event loop; nothing waits.
Guarantee: at-most-once; a try is counted as failed before it is compared.
Failure: abort; a refused caller gets 401 or 429 and reaches no handler of Flower's.
"""

import hmac
import logging
from base64 import b64decode
from collections.abc import Iterable
from typing import Any

from flower.app import Flower
from tornado.httputil import HTTPServerRequest
from tornado.web import RequestHandler

from foundation.backoff import SECOND, CountedSubject, doubling, seconds
from foundation.client_address import Network, client_address, counted_as
from foundation.failure_counts import FailureCounts

# There is one account, and its address may be that of a proxy shared with others.
BACKOFF = doubling(free=5, longest=30 * SECOND, memory=15 * 60 * SECOND)
REALM = 'Basic realm="flower"'
logger = logging.getLogger(__name__)
logger.setLevel(logging.WARNING)  # also in a process that logs errors only


class FlowerLogin:
    """Compares a login with the one user and password, and delays callers that send wrong ones."""

    def __init__(
        self, *, user: str, password: str, trusted: Iterable[Network], counts: FailureCounts
    ) -> None:
        self._expected = f"{user}:{password}".encode()
        self._trusted = tuple(trusted)
        self._counts = counts

    def refusal(self, *, authorization: str, peer: str, forwarded: str) -> tuple[int, str] | None:
        """Return None if the login is right; else the status and the header that goes with it."""
        if not authorization:  # a browser that has not asked its user yet
            return 401, REALM
        address = counted_as(client_address(peer, forwarded, self._trusted))
        counted = self._counts.count([CountedSubject(name=address, backoff=BACKOFF)])
        if counted.wait > 0:
            return 429, str(seconds(counted.wait))
        if hmac.compare_digest(_credentials(authorization), self._expected):
            self._counts.forget(address)
            return None
        logger.warning(
            "wrong password for Flower, failure %d",
            counted.failures[0],
            extra={"event": "LOGIN_FAILED", "address": address},
        )
        return 401, REALM


class FlowerBehindLogin(Flower):  # type: ignore[misc]  # Flower has no types
    """Asks for the login before it looks for a handler, so that every page has one."""

    def __init__(self, *, login: FlowerLogin, **options: Any) -> None:
        super().__init__(**options)
        self._login = login

    def find_handler(self, request: HTTPServerRequest, **options: Any) -> Any:
        """Return Flower's own handler, or the refusal."""
        refusal = self._login.refusal(
            authorization=request.headers.get("Authorization", ""),
            peer=request.remote_ip or "",
            forwarded=request.headers.get("X-Forwarded-For", ""),
        )
        if refusal is None:
            return super().find_handler(request, **options)
        return self.get_handler_delegate(
            request, Refused, {"status": refusal[0], "header": refusal[1]}
        )


class Refused(RequestHandler):
    """Answers 401 with a request for the login, or 429 with the time to wait."""

    def initialize(self, status: int, header: str) -> None:
        """Keep the reason."""
        self._refusal = status, header

    def prepare(self) -> None:
        """Answer every method."""
        status, header = self._refusal
        self.set_status(status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        if status == 429:
            self.set_header("Retry-After", header)
            self.finish(f"Too many attempts to sign in; try again in {header} s.\n")
        else:
            self.set_header("WWW-Authenticate", header)
            self.finish("Access denied\n")

    def check_xsrf_cookie(self) -> None:
        """Skip the check: nothing is done for the caller."""


def _credentials(authorization: str) -> bytes:
    scheme, _, sent = authorization.partition(" ")
    if scheme.lower() != "basic":
        return b""
    try:
        return b64decode(sent.strip(), validate=True)
    except ValueError:
        return b""
