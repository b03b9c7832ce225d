"""One connection to web: uvicorn's HTTP/1.1, but the application sees a request only when it is complete.

Timing: request-time, in the server's event loop.
Model: sync; only the application runs as a task, in a fresh context without anything of another request.
Guarantee: no more of a request is kept than the limits allow; beyond them the answer is a problem at once.
Failure: 400 for invalid HTTP, then the connection closes; 500 for the application's errors, which are logged.
"""

import asyncio
import contextvars
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from django.http import HttpResponse
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

from foundation.errors import IsolaneError
from foundation.known_caller import STATE
from foundation.linear_h11 import h11
from foundation.request_ids import HEADER
from orchestrator.web import refusals
from orchestrator.web.answer import ApplicationAnswer
from orchestrator.web.callers import Callers, credential_of
from orchestrator.web.connections import UNFINISHED, ClientConnection, Phase
from orchestrator.web.problem import ProblemAnswer, as_answer, of_response
from orchestrator.web.traffic import Traffic

ANSWERABLE = (h11.IDLE, h11.SEND_RESPONSE)
BEFORE_A_REQUEST = (*UNFINISHED, Phase.IDLE)
REQUEST_ID = HEADER.lower().encode()
# The application's answer to a request that it refuses by its header; None if it accepts the request.
Refusal = Callable[[Any], HttpResponse | None]


class LimitedProtocol(H11Protocol, asyncio.BufferedProtocol):
    """A connection within the limits; `Traffic` decides how it shares with others."""

    cycle: ApplicationAnswer

    def __init__(
        self,
        *,
        traffic: Traffic,
        callers: Callers,
        refusal: Refusal,
        session_cookie: bytes,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self.refusal = refusal
        self.traffic = traffic
        self.callers = callers
        self.session_cookie = session_cookie
        self.limits = traffic.limits
        self.connection = ClientConnection(peer=self, address="")
        self._body = bytearray()
        self._chunks = 0
        self._discarded = 0
        self._unread = False
        self._is_last = False
        self.headers = []

    # --- the connection
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register among the connections."""
        # As uvicorn does, without asking the kernel again: each system call may be a wait for Python's lock.
        self.connections.add(self)
        self.transport, self.flow = transport, FlowControl(transport)
        self.server = _address(transport.get_extra_info("sockname"))
        self.client = _address(transport.get_extra_info("peername"))
        self.scheme = "http"
        # So that `pause_writing` means: there are bytes that the caller has not read.
        transport.set_write_buffer_limits(high=0)
        self.connection.address = self.client[0]
        self.traffic.opened(self.connection)

    def connection_lost(self, exc: Exception | None) -> None:
        """Unregister the connection."""
        super().connection_lost(exc)
        self.traffic.closed(self.connection)

    def pause_writing(self) -> None:
        """Let a stream wait for its caller; buffer any other answer, so that its thread is free."""
        self._unread = True
        if self.connection.phase is Phase.STREAM:
            self.flow.pause_writing()

    def resume_writing(self) -> None:
        """Go on after the caller has read everything."""
        self._unread = False
        self.flow.resume_writing()
        if self.connection.phase is Phase.UNREAD:
            self._await_request()

    def shutdown(self) -> None:
        """Stop with the server; complete or nearly complete requests are still answered."""
        self._is_last = True
        if self.connection.phase is Phase.AT_WORK or self.connection.phase is Phase.STREAM:
            self.cycle.keep_alive = False
        elif self.connection.phase in {Phase.IDLE, Phase.UNREAD} or not self._has_header:
            self.transport.close()

    @property
    def _has_header(self) -> bool:
        return self.connection.phase not in {Phase.HEADER, Phase.IDLE}

    # --- reading
    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next bytes: one for all, since they are taken out at once."""
        return self.traffic.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take the received bytes out of the buffer."""
        self.data_received(bytes(self.traffic.buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Count the bytes, then parse them."""
        phase = self.connection.phase
        if phase is Phase.CLOSING:
            self._discard(len(data))
            return
        if phase is Phase.IDLE:
            self._begin_request()
        if phase in {*BEFORE_A_REQUEST, Phase.QUEUED}:
            self.traffic.received(self.connection, len(data))
        if (
            self.connection.phase is Phase.CLOSING
        ):  # refused: all connections together hold too much
            return
        if self.connection.held > self.limits.request_bytes:
            self.refuse(refusals.body_too_large(self.limits))
            return
        self.conn.receive_data(data)
        if phase in BEFORE_A_REQUEST:
            self.handle_events()
        else:
            self.flow.pause_reading()  # the next request waits until this one is answered

    def handle_events(self) -> None:
        """Parse the request as far as it has come."""
        while self.connection.phase in UNFINISHED:
            try:
                event = self.conn.next_event()
            except h11.RemoteProtocolError as error:
                self.refuse(self._invalid(error))
                return
            match event:
                case h11.Request():
                    self._take_head(event)
                case h11.Data():
                    self._take_body(event.data)
                case h11.EndOfMessage():
                    self.connection.caller = self.callers.of(self._credential())
                    self.traffic.whole(self.connection)
                case _:
                    return

    def _discard(self, size: int) -> None:
        self._discarded += size
        if self._discarded > self.limits.closing_bytes:
            self.drop()

    def _begin_request(self) -> None:
        self._body, self._chunks, self.headers = bytearray(), 0, []
        self.traffic.began(self.connection)

    def _take_head(self, request: h11.Request) -> None:
        self.headers = list(request.headers)
        raw_path, _, query = request.target.partition(b"?")
        self.scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": request.http_version.decode("ascii"),
            "server": self.server,
            "client": self.client,
            "scheme": "http",
            "method": request.method.decode("ascii"),
            "root_path": self.root_path,
            "path": self.root_path + unquote(raw_path.decode("ascii")),
            "raw_path": self.root_path.encode("ascii") + raw_path,
            "query_string": query,
            "headers": self.headers,
            "state": self.app_state.copy(),
        }
        if error := refusals.head_refused(request.target, self.headers, self.limits):
            self.refuse(error)
            return
        if response := self.refusal(self.scope):
            self._refuse(of_response(response))
            return
        self.traffic.header_complete(self.connection)
        if self.conn.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
            self._write(go_on)

    def _take_body(self, data: bytes) -> None:
        self._chunks += 1
        self.connection.body += len(data)
        if self.connection.body > self.limits.body_bytes:
            self.refuse(refusals.body_too_large(self.limits))
        elif self._chunks > self.limits.chunks:
            self.refuse(refusals.too_many_chunks(self.limits))
        else:
            self._body += data

    def _invalid(self, error: h11.RemoteProtocolError) -> IsolaneError:
        if error.error_status_hint == refusals.HeaderTooLarge.http_status:
            return refusals.header_too_large(self.limits)
        return refusals.malformed()

    # --- writing
    def refuse(self, error: IsolaneError) -> None:
        """Answer with a problem; keep reading and discard, or the answer could get lost."""
        request_id = dict(self.headers).get(REQUEST_ID, b"").decode("latin-1")
        self._refuse(as_answer(error, request_id))

    def _refuse(self, answer: ProblemAnswer) -> None:
        self.traffic.refused(self.connection)
        self._body = bytearray()
        if self.conn.our_state not in ANSWERABLE or self.transport.is_closing():
            self.drop()
            return
        is_head = self.conn.our_state is h11.SEND_RESPONSE and self.scope["method"] == "HEAD"
        headers = [*self.server_state.default_headers, *answer.headers]
        reason = HTTPStatus(answer.status).phrase.encode()
        self._write(
            h11.Response(status_code=answer.status, headers=headers, reason=reason),
            h11.Data(data=b"" if is_head else answer.body),
            h11.EndOfMessage(),
        )
        if self.conn.their_state is h11.SEND_BODY or self.conn.their_state is h11.ERROR:
            self.flow.resume_reading()
            self.transport.write_eof()
        else:  # nothing more will come
            self.transport.close()

    def begin(self) -> None:
        """Hand the complete request to the application."""
        self.cycle = ApplicationAnswer(
            on_stream=partial(self.traffic.became_stream, self.connection, self.connection.caller),
            most=self.limits.answer_bytes,
            scope=self.scope,
            conn=self.conn,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            on_response=self.on_response_complete,
        )
        self.cycle.body, self._body = self._body, bytearray()
        self.cycle.more_body = False
        self.cycle.keep_alive = not self._is_last
        self.cycle.message_event.set()
        work = self.cycle.run_asgi(self.app)
        task = self.loop.create_task(work, context=contextvars.Context())
        self.tasks.add(task)
        known = partial(self._ended, self.cycle, self.connection.caller, self._credential())
        task.add_done_callback(known)

    def _ended(
        self, answer: ApplicationAnswer, caller: str, credential: bytes, task: asyncio.Task[None]
    ) -> None:
        """Note the end of a request; the connection may have gone on to another one."""
        self.tasks.discard(task)
        if proven := answer.scope["state"].get(STATE):
            self.callers.learn(credential, proven)
        self.traffic.ended(caller, stream=answer.is_stream)

    def _credential(self) -> bytes:
        return credential_of(self.headers, self.session_cookie)

    def on_response_complete(self) -> None:
        """Note the end of the answer; the next request is read when the caller has read this one's."""
        self.server_state.total_requests += 1
        if self._unread:
            self.traffic.answered(self.connection, unread=True)
        else:
            self._await_request()

    def _await_request(self) -> None:
        if self.transport.is_closing():
            return
        self.traffic.answered(self.connection, unread=False)
        self.flow.resume_reading()
        if self.conn.our_state is h11.DONE and self.conn.their_state is h11.DONE:
            self.conn.start_next_cycle()
            if came_before := len(self.conn.trailing_data[0]):
                self._begin_request()
                self.traffic.received(self.connection, came_before)
                self.handle_events()

    def drop(self) -> None:
        """Close at once."""
        self.transport.abort()

    def unread_bytes(self) -> int:
        """Return the unread bytes of the answer."""
        return self.transport.get_write_buffer_size()

    def _write(self, *events: h11.Event) -> None:
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))


def _address(of_socket: tuple[Any, ...]) -> tuple[str, int]:
    """Return host and port; IPv6 addresses have more fields."""
    return str(of_socket[0]), int(of_socket[1])
