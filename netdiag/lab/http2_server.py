"""HTTP/2 conversations of the lab server on h2: many requests at once on one connection."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.exceptions
from h2.settings import SettingCodes
from hyperframe.frame import GoAwayFrame

from netdiag.lab.answers import Answer, LabRequest
from netdiag.lab.clock import Stamp, ns, until
from netdiag.lab.config import LabConfig
from netdiag.lab.link import Connection, PeerGone, Received, Sent, joined, place
from netdiag.lab.perform import BrokenOff, Performance
from netdiag.lab.truth import TruthLog
from netdiag.lab.work import Backend
from netdiag.protocols.redact import redact_target

DEFAULT_WINDOW = 65_535
_LARGEST_FLUSH = 1 << 17


@dataclass(slots=True)
class _Stream:
    """One request while it comes in, and the task that answers it."""

    request: int
    headers: list[tuple[str, str]]
    body: bytearray = field(default_factory=bytearray)
    task: asyncio.Task[None] | None = None


class Http2Conversation:
    """Serves one connection until it ends; returns the reason."""

    def __init__(self, link: Connection, backend: Backend, config: LabConfig, log: TruthLog, connection: int) -> None:
        """``connection`` numbers the truth rows."""
        self._link, self._backend, self._config, self._log, self._id = link, backend, config, log, connection
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="utf-8", validate_outbound_headers=False)
        )
        self.window_changed = asyncio.Event()
        self._streams: dict[int, _Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = 0
        self._settings_sent = asyncio.Event()
        self._settings_acknowledged = asyncio.Event()
        self._highest_stream = 0
        self._last_stream: int | None = None
        """Set by GOAWAY: streams above it are ignored (RFC 9113 section 6.8)."""
        self._reading: asyncio.Task[str] | None = None
        self._ending: str | None = None
        self._idle_timer: asyncio.TimerHandle | None = None

    async def serve(self, first: Received | None = None) -> str:
        """``first``: octets that were read already to tell the protocol. Returns why the connection is to be closed."""
        self._spawn(self._send_settings())
        self._reading = asyncio.ensure_future(self._read(first))
        try:
            return await self._reading
        except asyncio.CancelledError:
            if self._ending is None:
                raise
            return self._ending
        finally:
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _end(self, reason: str) -> None:
        """End the connection from this side."""
        if self._ending is None and self._reading is not None:
            self._ending = reason
            self._reading.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._end("client-reset" if isinstance(error, PeerGone) else f"server-error: {error!r}")

    # --- reading ---------------------------------------------------------------------------------------------------

    async def _read(self, received: Received | None) -> str:
        self._arm_idle()
        received = received or await self._link.receive()
        while received is not None:
            try:
                events = self.h2.receive_data(received.data)
            except h2.exceptions.ProtocolError as error:
                await self.flush()
                return f"protocol-error: {error}"
            for event in events:
                self._handle(event, received)
            await self.flush()
            self._arm_idle()
            received = await self._link.receive()
        return "client-closed"

    def _arm_idle(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._config.idle_ms is not None and not self._streams:
            loop = asyncio.get_running_loop()
            self._idle_timer = loop.call_later(self._config.idle_ms / 1e3, self._spawn_goodbye)

    def _spawn_goodbye(self) -> None:
        self._spawn(self._say_goodbye())

    async def _say_goodbye(self) -> None:
        """GOAWAY before an idle connection is closed (RFC 9113 section 6.8)."""
        await self.go_away(self._highest_stream)
        self._end("idle")

    def _handle(self, event: h2.events.Event, received: Received) -> None:
        match event:
            case h2.events.RequestReceived(stream_id=int(stream_id)):
                self._request_begins(stream_id, event, received)
            case h2.events.DataReceived(stream_id=int(stream_id)):
                self._body_arrives(stream_id, event)
            case h2.events.StreamEnded(stream_id=int(stream_id)) if stream_id in self._streams:
                stream = self._streams[stream_id]
                stream.task = self._spawn(self._exchange(stream_id, stream, received))
            case h2.events.StreamReset(stream_id=int(stream_id)):
                self._forget(stream_id, received)
            case h2.events.SettingsAcknowledged():
                self._settings_acknowledged.set()
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                self.window_changed.set()

    def _request_begins(self, stream_id: int, event: h2.events.RequestReceived, received: Received) -> None:
        if self._last_stream is not None and stream_id > self._last_stream:
            return
        self._highest_stream = stream_id
        headers = [(str(n), str(v)) for n, v in event.headers or ()]
        self._streams[stream_id] = _Stream(self._count, headers)
        self._row(self._count, "request-first", received.at, stream_id=stream_id)
        self._count += 1
        if dict(headers).get("expect") == "100-continue":
            self._spawn(self._continue(stream_id, self._streams[stream_id]))

    async def _continue(self, stream_id: int, stream: _Stream) -> None:
        behaviour = self._backend.app.behaviour_or_default(_request(stream))
        if behaviour.ignore_expect:
            return
        await until(Stamp.now().after(ns(behaviour.continue_ms)))
        sent = await Http2Sink(self, stream_id).interim(100)
        self._row(stream.request, "interim", sent.at, status=100, **place(sent))

    def _body_arrives(self, stream_id: int, event: h2.events.DataReceived) -> None:
        if stream_id in self._streams:
            self._streams[stream_id].body += event.data or b""
        size = event.flow_controlled_length or 0
        delay_ms = self._config.window_update_ms + self._config.read_ms_per_mib * size / (1 << 20)
        if delay_ms:
            self._spawn(self._acknowledge_later(size, stream_id, delay_ms))
        elif size:
            self.h2.acknowledge_received_data(size, stream_id)

    async def _acknowledge_later(self, size: int, stream_id: int, delay_ms: float) -> None:
        await asyncio.sleep(delay_ms / 1e3)
        self.h2.acknowledge_received_data(size, stream_id)
        await self.flush()

    def _forget(self, stream_id: int, received: Received) -> None:
        stream = self._streams.pop(stream_id, None)
        if stream is None:
            return
        self._row(stream.request, "fault", received.at, fault="reset-by-client")
        if stream.task is not None:
            stream.task.cancel()

    # --- answering -------------------------------------------------------------------------------------------------

    async def _exchange(self, stream_id: int, stream: _Stream, last: Received) -> None:
        request = _request(stream)
        facts = {"method": request.method, "path": redact_target(request.target), "body_bytes": len(request.body)}
        self._row(stream.request, "request-last", last.at, **facts)
        answer = self._backend.app.answer(request)
        try:
            await self._give(answer, stream_id, stream, last)
        finally:
            self._streams.pop(stream_id, None)
            self._arm_idle()
        if self._last_stream is not None and not self._streams:
            self._end("goaway")

    async def _give(self, answer: Answer, stream_id: int, stream: _Stream, last: Received) -> None:
        goaway = answer.behaviour.goaway
        if self._config.goaway_after == stream.request + 1 or self._config.max_requests == stream.request + 1:
            goaway = "with"
        if goaway == "before":
            return await self.go_away(max(0, stream_id - 2))
        if goaway == "with":
            await self.go_away(stream_id)
        sink = Http2Sink(self, stream_id, rst_code=answer.behaviour.rst_code)
        try:
            tcp_facts = self._link.tcp_facts if self._config.tcp_info else None
            performance = Performance(
                answer, sink, self._log, connection=self._id, request=stream.request, tcp_facts=tcp_facts
            )
            await self._backend.work.give(performance, Stamp.at_wall(last.at), len(stream.body), self._id)
        except BrokenOff:
            if sink.connection_broken:
                self._end("broken-off")
        if goaway == "after":
            await self.go_away(stream_id)
        await self._shrink_window(stream)
        return None

    async def _shrink_window(self, stream: _Stream) -> None:
        if self._config.shrink_window_to is not None and stream.request == 0:
            # h2 applies everything announced at the next acknowledgement, so only one announcement may be under way.
            await self._settings_acknowledged.wait()
            self.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: self._config.shrink_window_to})
            await self.flush()

    # --- writing ---------------------------------------------------------------------------------------------------

    async def _send_settings(self) -> None:
        """One SETTINGS frame with our values; h2 would announce defaults first and enforce limits before they are acknowledged."""
        config = self._config
        settings: dict[SettingCodes | int, int] = {SettingCodes.MAX_CONCURRENT_STREAMS: config.max_streams}
        if config.initial_window_bytes is not None:
            settings[SettingCodes.INITIAL_WINDOW_SIZE] = config.initial_window_bytes
        if config.header_table_bytes is not None:
            settings[SettingCodes.HEADER_TABLE_SIZE] = config.header_table_bytes
        self.h2.initiate_connection()
        self.h2.clear_outbound_data_buffer()
        self.h2.update_settings(settings)
        if (config.initial_window_bytes or 0) > DEFAULT_WINDOW:
            self.h2.increment_flow_control_window((config.initial_window_bytes or 0) - DEFAULT_WINDOW)
        if config.settings_ms:
            await until(Stamp.now().after(ns(config.settings_ms)))
        self._settings_sent.set()
        await self.flush()

    async def flush(self) -> Sent | None:
        """Write what h2 wants to say; nothing goes out before the SETTINGS (RFC 9113 section 3.4)."""
        await self._settings_sent.wait()
        data = self.h2.data_to_send()
        return await self._link.send(data) if data else None

    async def go_away(self, last_stream_id: int) -> None:
        """GOAWAY without ending the connection for h2, so that open streams complete."""
        self._last_stream = last_stream_id
        for stream_id in [s for s in self._streams if s > last_stream_id]:
            del self._streams[stream_id]
        await self._settings_sent.wait()
        sent = await self._link.send(GoAwayFrame(stream_id=0, last_stream_id=last_stream_id).serialize())
        self._log.add("goaway", self._id, at=sent.at, last_stream_id=last_stream_id)

    @property
    def link(self) -> Connection:
        """The connection below."""
        return self._link

    def _row(self, request: int, kind: str, at: int, **facts: object) -> None:
        self._log.add(kind, self._id, at=at, request=request, **facts)


class Http2Sink:
    """Frames one answer on an HTTP/2 stream."""

    def __init__(self, conversation: Http2Conversation, stream_id: int, *, rst_code: int = 2) -> None:
        """``connection_broken`` tells afterwards whether a fault ended the whole connection."""
        self._conversation = conversation
        self._h2 = conversation.h2
        self._stream_id = stream_id
        self._rst_code = rst_code
        self._ended = False
        self._ends_with_data = False
        self._trailers: list[tuple[str, str]] = []
        self.connection_broken = False

    async def interim(self, status: int) -> Sent:
        """HEADERS of a 1xx response."""
        headers = [(":status", str(status))]
        if status == 103:
            headers.append(("link", "</style.css>; rel=preload"))
        self._h2.send_headers(self._stream_id, headers)
        return await self._sent()

    async def head(self, answer: Answer, *, ends: bool) -> Sent:
        """HEADERS of the final response."""
        self._ends_with_data = answer.framing == "length" and not answer.trailers
        self._trailers = answer.trailers
        headers = [(":status", str(answer.status)), *answer.headers, ("server", "netdiag-lab")]
        self._h2.send_headers(self._stream_id, headers, end_stream=ends)
        return await self._sent()

    async def data(self, data: bytes, *, last: bool) -> Sent:
        """DATA frames, as the peer's windows allow."""
        view, sent = memoryview(data), list[Sent]()
        while not sent or view:
            room = await self._room(len(view))
            for part in self._frames(view[:room]):
                self._ended = last and self._ends_with_data and len(part) == len(view)
                self._h2.send_data(self._stream_id, bytes(part), end_stream=self._ended)
                view = view[len(part) :]
            sent.append(await self._sent())
        return joined(sent)

    async def _room(self, wanted: int) -> int:
        conversation = self._conversation
        while (window := self._h2.local_flow_control_window(self._stream_id)) <= 0 < wanted:
            conversation.window_changed.clear()
            await conversation.window_changed.wait()
        return min(window, wanted, _LARGEST_FLUSH)

    def _frames(self, view: memoryview) -> list[memoryview]:
        size = self._h2.max_outbound_frame_size
        return [view[i : i + size] for i in range(0, len(view), size)]

    async def finish(self) -> Sent | None:
        """Trailers, or an empty DATA frame, with END_STREAM where the last octets did not carry it."""
        if self._ended:
            return None
        if self._trailers:
            self._h2.send_headers(self._stream_id, self._trailers, end_stream=True)
        else:
            self._h2.end_stream(self._stream_id)
        return await self._sent()

    async def break_off(self, rest: bytes, *, reset: bool, inside_record: bool) -> Sent:
        """RST_STREAM, or the end of the connection (inside a record when asked)."""
        link = self._conversation.link
        if reset and not inside_record:
            self._h2.reset_stream(self._stream_id, error_code=self._rst_code)
            return await self._sent()
        self.connection_broken = True
        if inside_record and rest:
            self._h2.send_data(self._stream_id, rest[: self._h2.max_outbound_frame_size])
            sealed = link.sealed(self._h2.data_to_send())
            await link.send_raw(sealed[: max(1, len(sealed) // 2)])
        at = link.reset() if reset else link.end(notify=False)
        return Sent(at, at, 0)

    async def _sent(self) -> Sent:
        sent = await self._conversation.flush()
        # Another task's flush may have taken our octets along, in the same call of the loop: then this is their time.
        return sent or self._conversation.link.last_sent


def _request(stream: _Stream) -> LabRequest:
    pseudo = {n: v for n, v in stream.headers if n.startswith(":")}
    return LabRequest(
        method=pseudo.get(":method", ""),
        target=pseudo.get(":path", "*"),
        headers=[(n, v) for n, v in stream.headers if not n.startswith(":")],
        body=bytes(stream.body),
    )
