"""The modelled client's HTTP/2 on h2: requests at once, as the scenario and the server's limits allow."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.exceptions
from h2.settings import SettingCodes

from netdiag.lab.builder.http_request import CONTINUE_PATIENCE_MS, Note, ReadPause, body_of, header_pairs, write_pieces
from netdiag.lab.builder.marks import ExchangeMarks, outcome_of
from netdiag.lab.builder.tls_stream import Stream
from netdiag.lab.builder.virtual_time import now_ns
from netdiag.lab.clock import Stamp, ns, until
from netdiag.lab.link import PeerGone, Sent, joined
from netdiag.lab.scenario import ConnectionPlan, Request

_GOAWAY = 7


@dataclass(slots=True)
class _Call:
    """One HTTP/2 request on its way."""

    request: Request
    marks: ExchangeMarks
    pause: ReadPause
    done: asyncio.Event = field(default_factory=asyncio.Event)


class Http2Client:
    """Requests at once, as the scenario and the server's limits allow."""

    def __init__(self, stream: Stream, plan: ConnectionPlan, number: int, authority: str, note: Note) -> None:
        """As ``Http1Client``."""
        self._stream, self._plan, self._number, self._authority, self._note = stream, plan, number, authority, note
        self._h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=True, header_encoding="utf-8", validate_outbound_headers=False)
        )
        self._calls: dict[int, _Call] = {}
        self._changed = asyncio.Event()
        self._settings_came = False
        self._ended: str | None = None
        self._sent_requests = 0
        self._goaway = False
        self._unread = bytearray()

    async def run(self) -> None:
        """All requests of the plan, as far as the connection lasts."""
        self._announce()
        await self._flush()
        reading = asyncio.ensure_future(self._read())
        ready = Stamp.now()
        try:
            timed = [self._timed(request, ready) for request in self._plan.requests if request.at_ms is not None]
            chain = [request for request in self._plan.requests if request.at_ms is None]
            await asyncio.gather(self._chained(chain), *timed)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        await self._say_goodbye()

    def _announce(self) -> None:
        window = self._plan.window_bytes
        if window is not None:
            self._h2.initiate_connection()
            preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            self._h2.clear_outbound_data_buffer()
            self._h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: window, SettingCodes.ENABLE_PUSH: 0})
            self._preface = preface
        else:
            self._h2.initiate_connection()
            self._preface = b""

    async def _flush(self) -> Sent | None:
        data = self._preface + self._h2.data_to_send()
        self._preface = b""
        return await self._stream.send(data) if data else None

    async def _chained(self, requests: list[Request]) -> None:
        for request in requests:
            if request.think_ms:
                await until(Stamp.now().after(ns(request.think_ms)))
            if not await self._exchange(request):
                return

    async def _timed(self, request: Request, ready: Stamp) -> None:
        await until(ready.after(ns(request.at_ms or 0.0)))
        await self._exchange(request)

    async def _exchange(self, request: Request) -> bool:
        marks = ExchangeMarks(connection=self._number, request=-1, method=request.method, path=request.path)
        try:
            stream_id = await self._slot(marks)
            call = _Call(request, marks, ReadPause(request))
            self._calls[stream_id] = call
            await self._send(stream_id, call)
            await self._finish(stream_id, call)
        except (PeerGone, h2.exceptions.ProtocolError):
            marks.outcome = "reset" if marks.outcome == "incomplete" else marks.outcome
        marks.ended_at = marks.ended_at or now_ns()
        return self._ended is None and not self._goaway

    async def _slot(self, marks: ExchangeMarks) -> int:
        """Wait for the right to open a stream (RFC 9113 section 5.1.2)."""
        while self._ended is None and not self._goaway:
            limit = self._h2.remote_settings.max_concurrent_streams
            waits = self._plan.wait_for_settings and self._sent_requests and not self._settings_came
            if self._h2.open_outbound_streams < limit and not waits:
                break
            await self._change()
        if self._ended is not None or self._goaway:
            raise PeerGone(self._ended or "going away")
        marks.request, self._sent_requests = self._sent_requests, self._sent_requests + 1
        marks.started_at = now_ns()
        marks.stream_id = self._h2.get_next_available_stream_id()
        self._note(marks)
        return marks.stream_id

    async def _send(self, stream_id: int, call: _Call) -> None:
        request, marks, body = call.request, call.marks, body_of(call.request)
        headers = [
            (":method", request.method),
            (":scheme", "https" if self._stream.secure else "http"),
            (":authority", self._authority),
            (":path", request.path),
            *header_pairs(request),
        ]
        if body:
            headers.append(("content-length", str(len(body))))
        self._h2.send_headers(stream_id, headers, end_stream=not body)
        sent = await self._flush()
        assert sent is not None
        marks.first_offset, marks.head_end, marks.last_end = sent.offset, sent.end_offset, sent.end_offset
        if not body:
            return
        if request.expect_continue:
            marks.waited_for_continue = True
            await self._await_interim(marks)
        parts = await write_pieces(request, body, lambda data, last: self._send_data(stream_id, data, last))
        marks.body_first, marks.last_end = parts[0].offset, parts[-1].end_offset

    async def _await_interim(self, marks: ExchangeMarks) -> None:
        try:
            async with asyncio.timeout(CONTINUE_PATIENCE_MS / 1e3):
                while not marks.interim:
                    await self._change()
        except TimeoutError:
            return

    async def _send_data(self, stream_id: int, data: bytes, last: bool) -> Sent:
        view, sent = memoryview(data), list[Sent]()
        while view:
            while (room := self._h2.local_flow_control_window(stream_id)) <= 0:
                await self._change()
            part = view[: min(room, self._h2.max_outbound_frame_size)]
            view = view[len(part) :]
            self._h2.send_data(stream_id, bytes(part), end_stream=last and not view)
            flushed = await self._flush()
            assert flushed is not None
            sent.append(flushed)
        return joined(sent)

    async def _finish(self, stream_id: int, call: _Call) -> None:
        patience = None if call.request.cancel_ms is None else call.request.cancel_ms / 1e3
        try:
            async with asyncio.timeout(patience):
                await call.done.wait()
        except TimeoutError:
            call.marks.outcome = "timeout:read"
            self._h2.reset_stream(stream_id, error_code=8)
            await self._flush()

    async def _change(self) -> None:
        if self._ended is not None:
            raise PeerGone(self._ended)
        self._changed.clear()
        await self._changed.wait()

    # --- reading ---------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            while (received := await self._stream.receive()) is not None:
                for event in self._h2.receive_data(self._without_goaway(received.data)):
                    await self._handle(event)
                await self._flush()
                self._changed.set()
            self._finish_all("closed_early")
        except (PeerGone, h2.exceptions.ProtocolError):
            self._finish_all("reset")

    def _finish_all(self, outcome: str) -> None:
        self._ended = outcome
        for call in self._calls.values():
            if not call.done.is_set():
                self._complete(call, outcome)
        self._changed.set()

    def _complete(self, call: _Call, outcome: str) -> None:
        call.marks.outcome, call.marks.ended_at = outcome, now_ns()
        call.done.set()

    async def _handle(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RemoteSettingsChanged):
            self._settings_came = True
        call = self._calls.get(getattr(event, "stream_id", None) or 0)
        if call is None:
            return
        match event:
            case h2.events.InformationalResponseReceived():
                call.marks.interim.append(_status(event.headers))
            case h2.events.ResponseReceived() | h2.events.TrailersReceived():
                self._note_head(call.marks, dict(event.headers or ()))
            case h2.events.DataReceived():
                await call.pause.after(len(event.data or b""))
                self._h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id or 0)
            case h2.events.StreamEnded():
                self._complete(call, outcome_of(call.marks.status, call.marks.grpc_status))
            case h2.events.StreamReset():
                call.marks.error_code = int(event.error_code or 0)
                self._complete(call, "reset")

    @staticmethod
    def _note_head(marks: ExchangeMarks, headers: dict[Any, Any]) -> None:
        """Of the head or the trailers."""
        if ":status" in headers:
            marks.status = int(headers[":status"])
        if "grpc-status" in headers:
            marks.grpc_status = int(headers["grpc-status"])

    def _without_goaway(self, data: bytes) -> bytes:
        """Take whole frames and act on GOAWAY here: h2 would refuse to let the open streams complete (RFC 9113 section 6.8)."""
        self._unread += data
        out = bytearray()
        while len(self._unread) >= 9:
            size = 9 + int.from_bytes(self._unread[:3], "big")
            if len(self._unread) < size:
                break
            frame = bytes(self._unread[:size])
            del self._unread[:size]
            if frame[3] == _GOAWAY:
                self._going_away(int.from_bytes(frame[9:13], "big") & 0x7FFFFFFF)
            else:
                out += frame
        return bytes(out)

    def _going_away(self, last_stream_id: int) -> None:
        """Streams above the last one named were not processed; no new ones may be opened."""
        self._goaway = True
        for stream_id, call in self._calls.items():
            if stream_id > last_stream_id and not call.done.is_set():
                self._complete(call, "reset")

    async def _say_goodbye(self) -> None:
        if self._ended is None and self._plan.stays_ms:
            await until(Stamp.now().after(ns(self._plan.stays_ms)))


def _status(headers: object) -> int:
    return int(dict(headers)[":status"])  # type: ignore[call-overload]
