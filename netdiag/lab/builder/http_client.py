"""The modelled client's HTTP/1.1 and HTTP/2: real octets by h11 and h2, sent when the scenario says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h11
from h2.settings import SettingCodes

from netdiag.lab.answers import KNOB_HEADER
from netdiag.lab.builder.marks import ExchangeMarks, outcome_of
from netdiag.lab.builder.tls_stream import Stream
from netdiag.lab.builder.virtual_time import now_ns
from netdiag.lab.clock import Stamp, ns, until
from netdiag.lab.link import PeerGone, Sent, joined
from netdiag.lab.scenario import ConnectionPlan, Request

CONTINUE_PATIENCE_MS = 1000.0
"""How long the client waits for 100 before it sends the body anyway (RFC 9110 section 10.1.1; curl's default)."""
_USER_AGENT = "netdiag-lab-client"
_GOAWAY = 7
Note = Callable[[ExchangeMarks], None]


def body_of(request: Request) -> bytes:
    """JSON of exactly ``body_bytes`` octets (or as small as it can be)."""
    if not request.body_bytes:
        return b""
    document = {"model": "lab-1", "stream": request.answer.stream is not False, "prompt": ""}
    bare = len(json.dumps(document))
    document["prompt"] = "a" * max(0, request.body_bytes - bare)
    return json.dumps(document).encode()


def header_pairs(request: Request) -> list[tuple[str, str]]:
    """The request's own fields; its knobs travel in one of them, as with the real server."""
    pairs = [("user-agent", _USER_AGENT), ("accept", "*/*")]
    if request.body_bytes:
        pairs.append(("content-type", "application/json"))
    if request.knobs:
        pairs.append((KNOB_HEADER, ",".join(f"{k}={_text(v)}" for k, v in request.knobs.items() if k != "schedule")))
    if request.expect_continue:
        pairs.append(("expect", "100-continue"))
    for line in request.headers:
        name, _, value = line.partition(":")
        pairs.append((name.strip().lower(), value.strip()))
    return pairs


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _pieces(request: Request, body: bytes, send: Callable[[bytes, bool], object]) -> list[Sent]:
    """Write a body evenly over ``body_ms``."""
    count = min(request.body_pieces, max(1, len(body)))
    edges = [len(body) * i // count for i in range(count + 1)]
    start, out = Stamp.now(), []
    for i in range(count):
        await until(start.after(ns(request.body_ms) * i // max(1, count - 1)))
        sent = send(body[edges[i] : edges[i + 1]], i == count - 1)
        out.append(await sent)  # type: ignore[misc]
    return out


@dataclass(slots=True)
class _ReadPause:
    """Stops reading once, when so much of a body has come."""

    request: Request
    taken_bytes: int = 0
    done: bool = False

    async def after(self, size: int) -> None:
        self.taken_bytes += size
        limit = self.request.read_pause_after
        if limit is not None and not self.done and self.taken_bytes >= limit:
            self.done = True
            await until(Stamp.now().after(ns(self.request.read_pause_ms)))


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
        parts = await _pieces(request, body, self._send_data)
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
        pause = _ReadPause(request)
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


@dataclass(slots=True)
class _Call:
    """One HTTP/2 request on its way."""

    request: Request
    marks: ExchangeMarks
    pause: _ReadPause
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
            call = _Call(request, marks, _ReadPause(request))
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
        parts = await _pieces(request, body, lambda data, last: self._send_data(stream_id, data, last))
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
