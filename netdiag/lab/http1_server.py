"""HTTP/1.1 conversations of the lab server on h11: requests one after another on one connection."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import h11

from netdiag.lab.answers import Answer, LabRequest
from netdiag.lab.behaviour import Behaviour
from netdiag.lab.clock import Stamp, ns, until
from netdiag.lab.config import LabConfig
from netdiag.lab.link import Connection, Received, Sent, joined, place
from netdiag.lab.perform import BrokenOff, Performance
from netdiag.lab.truth import TruthLog
from netdiag.lab.work import Backend
from netdiag.protocols.redact import redact_target


class IdleTimeout(Exception):
    """Nothing came within the idle limit."""


class Http1Conversation:
    """Serves one connection until it ends; returns the reason."""

    def __init__(self, link: Connection, backend: Backend, config: LabConfig, log: TruthLog, connection: int) -> None:
        """``connection`` numbers the truth rows."""
        self._link, self._backend, self._config, self._log, self._id = link, backend, config, log, connection
        self._h11 = h11.Connection(h11.SERVER)
        self._count = 0
        self._last_received: Received | None = None
        self._first_at = 0

    async def serve(self, first: Received | None = None) -> str:
        """``first``: octets that were read already to tell the protocol. Returns why the connection is to be closed."""
        if first is not None:
            self._feed(first)
        try:
            while True:
                read = await self._request()
                if read is None:
                    return "client-closed"
                request, last = read
                reason = await self._exchange(request, last)
                if reason:
                    return reason
                self._count += 1
                self._h11.start_next_cycle()
                if self._h11.trailing_data[0]:
                    self._first_at = last.at
        except h11.RemoteProtocolError as error:
            await self._bad_request(error)
            return "bad-request"
        except IdleTimeout:
            return "idle"
        except BrokenOff:
            return "broken-off"

    # --- the request -----------------------------------------------------------------------------------------------

    async def _request(self) -> tuple[LabRequest, Received] | None:
        event = await self._next_event(self._config.idle_ms)
        if not isinstance(event, h11.Request):
            return None
        head = LabRequest(
            method=event.method.decode("latin-1"),
            target=event.target.decode("latin-1"),
            headers=[(n.decode("latin-1"), v.decode("latin-1")) for n, v in event.headers],
        )
        behaviour = self._backend.app.behaviour_or_default(head)
        await self._continue(behaviour)
        body = bytearray()
        while isinstance(event := await self._next_event(None), h11.Data):
            body += event.data
            await self._read_slowly(len(event.data))
        if not isinstance(event, h11.EndOfMessage):
            return None
        last = self._last_received
        assert last is not None
        request = LabRequest(method=head.method, target=head.target, headers=head.headers, body=bytes(body))
        return request, last

    async def _continue(self, behaviour: Behaviour) -> None:
        if not self._h11.they_are_waiting_for_100_continue or behaviour.ignore_expect:
            return
        await until(Stamp.now().after(ns(behaviour.continue_ms)))
        sent = await self._link.send(self._h11.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
        self._row("interim", sent.at, status=100, **place(sent))

    async def _read_slowly(self, size: int) -> None:
        if self._config.read_ms_per_mib:
            await asyncio.sleep(self._config.read_ms_per_mib / 1e3 * size / (1 << 20))

    async def _next_event(self, idle_ms: float | None) -> object:
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            try:
                async with asyncio.timeout(None if idle_ms is None else idle_ms / 1e3):
                    received = await self._link.receive()
            except TimeoutError:
                raise IdleTimeout from None
            if received is None:
                if self._h11.their_state is h11.IDLE:
                    return None
                self._h11.receive_data(b"")
            else:
                self._feed(received)
            idle_ms = None
        if isinstance(event, h11.Request):
            self._row("request-first", self._first_at)
        return event

    def _feed(self, received: Received) -> None:
        """Note when octets came; a request that begins inside a read (pipelining) began with that read."""
        if self._h11.their_state in (h11.IDLE, h11.DONE) and not self._h11.trailing_data[0]:
            self._first_at = received.at
        self._last_received = received
        self._h11.receive_data(received.data)

    # --- the answer ------------------------------------------------------------------------------------------------

    async def _exchange(self, request: LabRequest, last: Received) -> str | None:
        facts = {"method": request.method, "path": redact_target(request.target), "body_bytes": len(request.body)}
        self._row("request-last", last.at, **facts)
        answer = self._backend.app.answer(request)
        sink = _Http1Sink(self._link, self._h11, closing=self._closing(answer))
        tcp_facts = self._link.tcp_facts if self._config.tcp_info else None
        performance = Performance(
            answer, sink, self._log, connection=self._id, request=self._count, tcp_facts=tcp_facts
        )
        await self._backend.work.give(performance, Stamp.at_wall(last.at), len(request.body), self._id)
        if sink.until_close or self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE:
            return "server-closed"
        return None

    def _closing(self, answer: Answer) -> bool:
        limit = self._config.max_requests
        return answer.behaviour.connection_close or (limit is not None and self._count + 1 >= limit)

    async def _bad_request(self, error: h11.RemoteProtocolError) -> None:
        body = f"{error}\n".encode()
        status = error.error_status_hint or 400
        head = f"HTTP/1.1 {status} {_reason(status)}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        await self._link.send(head.encode() + body)

    def _row(self, kind: str, at: int, **facts: object) -> None:
        self._log.add(kind, self._id, at=at, request=self._count, **facts)


class _Http1Sink:
    """Frames one answer on an HTTP/1 connection."""

    def __init__(self, link: Connection, connection: h11.Connection, *, closing: bool) -> None:
        self._link = link
        self._h11 = connection
        self._closing = closing
        self._write_calls = 1
        self._trailers: list[tuple[str, str]] = []
        self.until_close = False

    async def interim(self, status: int) -> Sent:
        headers = [("link", "</style.css>; rel=preload")] if status == 103 else []
        return await self._send(h11.InformationalResponse(status_code=status, headers=headers, reason=_reason(status)))

    async def head(self, answer: Answer, *, ends: bool) -> Sent:
        headers = [*answer.headers, ("server", "netdiag-lab")]
        if answer.behaviour.keep_alive_claim is not None:
            headers.append(("keep-alive", answer.behaviour.keep_alive_claim))
        if answer.framing == "close":
            return await self._head_until_close(answer, headers)
        if self._closing:
            headers.append(("connection", "close"))
        self._write_calls = answer.behaviour.write_calls
        self._trailers = answer.trailers if answer.framing != "length" else []
        data = self._h11.send(h11.Response(status_code=answer.status, headers=headers, reason=_reason(answer.status)))
        if ends:
            data = (data or b"") + (self._h11.send(h11.EndOfMessage()) or b"")
        return await self._link.send(data or b"")

    async def _head_until_close(self, answer: Answer, headers: list[tuple[str, str]]) -> Sent:
        """h11 would add chunked framing for an HTTP/1.1 client, so this head is written by hand (RFC 9112 section 6.3, case 8)."""
        self.until_close = True
        lines = [f"HTTP/1.1 {answer.status} {_reason(answer.status)}"]
        lines += [f"{name}: {value}" for name, value in [*headers, ("connection", "close")]]
        return await self._link.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def data(self, data: bytes, *, last: bool) -> Sent:
        octets = data if self.until_close else self._h11.send(h11.Data(data=data)) or b""
        if self._write_calls == 1:
            return await self._link.send(octets)
        step = -(-len(octets) // self._write_calls)
        sent = [await self._link.send(octets[i : i + step]) for i in range(0, len(octets), step)]
        return joined(sent)

    async def finish(self) -> Sent | None:
        if self.until_close:
            return None
        octets = self._h11.send(h11.EndOfMessage(headers=self._trailers)) or b""
        return await self._link.send(octets) if octets else None

    async def break_off(self, rest: bytes, *, reset: bool, inside_record: bool) -> Sent:
        if inside_record and rest:
            framed = rest if self.until_close else self._h11.send(h11.Data(data=rest)) or b""
            sealed = self._link.sealed(framed)
            await self._link.send_raw(sealed[: max(1, len(sealed) // 2)])
        at = self._link.reset() if reset else self._link.end(notify=False)
        return Sent(at, at, 0)

    async def _send(self, event: h11.Event) -> Sent:
        return await self._link.send(self._h11.send(event) or b"")


def _reason(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
