"""The modelled client's HTTP/1.1 on h11: requests one after another."""

from __future__ import annotations

import asyncio

import h11

from netdiag.lab.builder.http_request import CONTINUE_PATIENCE_MS, Note, ReadPause, body_of, header_pairs, write_pieces
from netdiag.lab.builder.marks import ExchangeMarks, outcome_of
from netdiag.lab.builder.tls_stream import Stream
from netdiag.lab.builder.virtual_time import now_ns
from netdiag.lab.clock import Stamp, ns, until
from netdiag.lab.link import PeerGone, Sent
from netdiag.lab.scenario import ConnectionPlan, Request


class Http1Client:
    """Requests one after another."""

    def __init__(self, stream: Stream, plan: ConnectionPlan, number: int, authority: str, note: Note) -> None:
        """``note`` gets the marks of each exchange when it begins; they fill while it goes on."""
        self._stream, self._plan, self._number, self._authority, self._note = stream, plan, number, authority, note
        self._h11 = h11.Connection(h11.CLIENT)

    async def run(self) -> None:
        """All requests of the plan, as far as the connection lasts."""
        ready = Stamp.now()
        for index, request in enumerate(self._plan.requests):
            if request.at_ms is not None:
                await until(ready.after(ns(request.at_ms)))
            elif request.think_ms:
                await until(Stamp.now().after(ns(request.think_ms)))
            if not await self._exchange(index, request):
                return

    async def _exchange(self, index: int, request: Request) -> bool:
        marks = ExchangeMarks(connection=self._number, request=index, method=request.method, path=request.path)
        marks.started_at = now_ns()
        self._note(marks)
        try:
            async with asyncio.timeout(None) as patience:
                await self._send(request, marks)
                if request.cancel_ms is not None:
                    loop = asyncio.get_running_loop()
                    patience.reschedule(loop.time() + request.cancel_ms / 1e3)
                await self._receive(request, marks)
        except TimeoutError:
            marks.outcome = "timeout:read"
            return False
        except PeerGone:
            marks.outcome = "reset"
            return False
        except h11.RemoteProtocolError:
            marks.outcome = "closed_early"
            return False
        finally:
            marks.ended_at = now_ns()
        if self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE:
            return False
        self._h11.start_next_cycle()
        return True

    async def _send(self, request: Request, marks: ExchangeMarks) -> None:
        body = body_of(request)
        headers = [("host", self._authority), *header_pairs(request)]
        if body:
            headers.append(("content-length", str(len(body))))
        head = h11.Request(method=request.method, target=request.path, headers=headers)
        octets = self._h11.send(head) or b""
        if not body:
            octets += self._h11.send(h11.EndOfMessage()) or b""
        sent = await self._stream.send(octets)
        marks.first_offset, marks.head_end, marks.last_end = sent.offset, sent.end_offset, sent.end_offset
        if not body:
            return
        if request.expect_continue:
            marks.waited_for_continue = True
            await self._await_continue(marks)
        parts = await write_pieces(request, body, self._send_data)
        marks.body_first, marks.last_end = parts[0].offset, parts[-1].end_offset

    async def _send_data(self, data: bytes, last: bool) -> Sent:
        octets = self._h11.send(h11.Data(data=data)) or b""
        if last:
            octets += self._h11.send(h11.EndOfMessage()) or b""
        return await self._stream.send(octets)

    async def _await_continue(self, marks: ExchangeMarks) -> None:
        try:
            async with asyncio.timeout(CONTINUE_PATIENCE_MS / 1e3):
                event = await self._next_event()
        except TimeoutError:
            return
        if isinstance(event, h11.InformationalResponse):
            marks.interim.append(event.status_code)

    async def _receive(self, request: Request, marks: ExchangeMarks) -> None:
        pause = ReadPause(request)
        while not isinstance(event := await self._next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                marks.status = event.status_code
            elif isinstance(event, h11.InformationalResponse):
                marks.interim.append(event.status_code)
            elif isinstance(event, h11.Data):
                await pause.after(len(event.data))
            elif isinstance(event, h11.ConnectionClosed):
                marks.outcome = "closed_early"
                raise h11.RemoteProtocolError("closed before the answer")
        marks.outcome = outcome_of(marks.status)

    async def _next_event(self) -> object:
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            received = await self._stream.receive()
            self._h11.receive_data(received.data if received else b"")
        return event
