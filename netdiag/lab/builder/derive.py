"""The truth of a built capture from what its hosts know: every phase of every exchange in nanoseconds, by the normative definitions.

Nothing here looks at the octets the way an analysis does: places in the streams come from the hosts that wrote them, instants from the frames
at the capture point.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator
from typing import Any

from netdiag.lab.builder.build import Built, ConnectionRun
from netdiag.lab.builder.capture import Frame
from netdiag.lab.builder.marks import ExchangeMarks
from netdiag.lab.builder.observe import Observed, RecordEnds, Sight, observe
from netdiag.lab.builder.segment import Datagram, parse
from netdiag.lab.builder.tcp import Endpoint, Place
from netdiag.lab.builder.truth import TrueConnection, TrueEvent, TrueExchange, TrueResolution, TrueSpan, Truth
from netdiag.lab.truth import ServedExchange, TruthRow

_RESENT = ("fast", "rto", "tlp")


def truth_of(built: Built, frames: list[Frame]) -> Truth:
    """``frames``: as ``frames_at_tap`` gives them."""
    resolver = _Resolutions(frames)
    connections, exchanges = [], []
    for run in built.runs:
        observed = {id(end): observe(frames, end, _server_isn(run, end)) for end in run.attempts}
        connections += [_connection(built, run, end, observed[id(end)]) for end in run.attempts]
        chosen = run.winner or (run.attempts[-1] if run.attempts else None)
        secured = built.scenario.server.tls
        view = _View(run, observed[id(chosen)], resolver, secured=secured) if chosen is not None else None
        exchanges += list(_exchanges(built, run, view, resolver))
    exchanges.sort(key=lambda e: (e.started_at or 0, e.connection, e.request))
    count = sum(frame.number is not None for frame in frames)
    scenario = built.scenario
    return Truth(
        scenario=scenario.name,
        seed=scenario.seed,
        frames=count,
        exchanges=exchanges,
        connections=connections,
        resolutions=[r for run in built.runs for r in resolver.of(run)],
    )


def _server_isn(run: ConnectionRun, end: Endpoint) -> int | None:
    return run.server_end.isn if run.server_end is not None and run.winner is end else None


class _Resolutions:
    """Questions and answers as they passed the capture point."""

    def __init__(self, frames: list[Frame]) -> None:
        self._seen: list[tuple[Frame, Datagram]] = []
        for frame in frames:
            item = parse(frame.data)
            if isinstance(item, Datagram):
                self._seen.append((frame, item))

    def of(self, run: ConnectionRun) -> Iterator[TrueResolution]:
        for question in run.resolutions:
            wanted = question.id.to_bytes(2, "big")
            mine = [(f, d) for f, d in self._seen if d.payload[:2] == wanted and question.port in _ports(d)]
            query = next((f for f, _ in mine if f.from_client), None)
            answer = next((f for f, _ in mine if not f.from_client), None)
            yield TrueResolution(
                name=question.name,
                type=question.type,
                query_at=query.at if query else None,
                query_packet=query.number if query else None,
                answer_at=answer.at if answer else None,
                answer_packet=answer.number if answer else None,
                attempts=question.attempts,
                rcode=question.rcode,
                addresses=tuple(question.addresses),
            )

    def span(self, run: ConnectionRun, before: int | None) -> TrueSpan | None:
        """First query to the last answer before the first SYN."""
        questions = list(self.of(run))
        starts = [(q.query_at, q.query_packet) for q in questions if q.query_at is not None]
        ends = [
            (q.answer_at, q.answer_packet)
            for q in questions
            if q.answer_at is not None and (before is None or q.answer_at <= before)
        ]
        if not starts:
            return None
        first, last = min(starts), max(ends, default=max(starts))
        return TrueSpan(name="dns", started_at=first[0], ended_at=last[0], first_packet=first[1], last_packet=last[1])


def _ports(datagram: Datagram) -> tuple[int, int]:
    return datagram.source_port, datagram.destination_port


class _View:
    """One connection at the capture point with what its hosts know about their streams."""

    def __init__(self, run: ConnectionRun, observed: Observed, resolver: _Resolutions, *, secured: bool) -> None:
        self.run, self.observed = run, observed
        is_tls = run.session is not None or run.server_session is not None
        self.secured = secured
        server_stream = run.server_end.sender.stream if run.server_end is not None else b""
        self.server_records = RecordEnds.of(server_stream, tls=is_tls)
        self.resolver = resolver

    def sent(self, offset: int | None) -> Sight | None:
        """First sighting of an octet that the client sent (of its record's first octet, for the first of a message)."""
        return None if offset is None else self.observed.client.seen(offset)

    def usable(self, offset: int | None) -> Sight | None:
        """When an octet of the server could be used: its whole record had passed."""
        if offset is None:
            return None
        return self.observed.server.deliverable(self.server_records.last_octet(offset))

    def setup(self, request_first: Sight | None) -> list[TrueSpan]:
        """dns, tcp and tls of the connection's first request."""
        observed, spans = self.observed, []
        syn = observed.client.syn
        dns = self.resolver.span(self.run, syn.at if syn else None)
        spans += [dns] if dns else []
        answered = observed.first_syn_ack or observed.server.reset
        if syn is not None and answered is not None:
            spans.append(_span("tcp", syn, answered))
        tls = self._tls(request_first)
        return [*spans, tls] if tls else spans

    def _tls(self, request_first: Sight | None) -> TrueSpan | None:
        session, server = self.run.session, self.run.server_session
        if session is None or server is None:
            return self._failed_tls()
        hello = self.observed.client.seen(session.hello[0])
        own = self.observed.client.seen(session.finished[1] - 1)
        peer = self.observed.server.deliverable(server.finished[1] - 1)
        if hello is None or own is None or peer is None:
            return None
        end = max((own, peer), key=lambda sight: sight.at)
        if request_first is not None and request_first.at < end.at:
            end = request_first
        return _span("tls", hello, end)

    def _failed_tls(self) -> TrueSpan | None:
        """A handshake that broke off ends with the RST or FIN that ended it."""
        hello, server, client = self.observed.client.seen(0), self.observed.server, self.observed.client
        ends = [sight for sight in (server.reset, server.fin, client.reset, client.fin) if sight is not None]
        if not self.secured or hello is None or not ends:
            return None
        return _span("tls", hello, min(ends, key=lambda sight: sight.at))


def _span(name: str, first: Sight, last: Sight) -> TrueSpan:
    return TrueSpan(
        name=name, started_at=first.at, ended_at=last.at, first_packet=first.packet, last_packet=last.packet
    )


def _exchanges(built: Built, run: ConnectionRun, view: _View | None, resolver: _Resolutions) -> Iterator[TrueExchange]:
    served = {s.request: s for s in built.log.exchanges() if s.connection == run.number}
    rows = [r for r in built.log if r.connection == run.number]
    for marks in (m for m in built.marks if m.connection == run.number):
        exchange = _blank(run, marks)
        if view is None:
            dns = resolver.span(run, None)
            exchange.phases = [dns] if dns else []
        else:
            _fill(exchange, view, marks, served.get(marks.request), rows)
        if exchange.phases:
            exchange.started_at = exchange.phases[0].started_at
            exchange.ended_at = exchange.phases[-1].ended_at
        yield exchange


def _blank(run: ConnectionRun, marks: ExchangeMarks) -> TrueExchange:
    end = run.winner or (run.attempts[-1] if run.attempts else None)
    session = run.session
    alpn = (session.alpn if session is not None else run.plan.protocol) or "http/1.1"
    return TrueExchange(
        connection=run.number,
        request=marks.request,
        stream_id=marks.stream_id,
        client=_text(end.local) if end else "",
        server=_text(end.remote) if end else "",
        protocol=alpn,
        method=marks.method,
        path=marks.path,
        status=marks.status,
        outcome=marks.outcome,
        reused=marks.request > 0,
    )


def _fill(
    exchange: TrueExchange, view: _View, marks: ExchangeMarks, served: ServedExchange | None, rows: list[TruthRow]
) -> None:
    first = view.sent(marks.first_offset)
    spans = view.setup(first) if not exchange.reused else []
    last = view.sent(marks.last_end - 1 if marks.last_end else None)
    if first is not None:
        exchange.request_packet = first.packet
    if first is not None and last is not None:
        spans += _sending(view, marks, rows, first, last)
    if served is not None:
        exchange.server_wait_ns = served.wait_ns
        spans += _answering(exchange, view, served, rows, last)
    exchange.phases = spans


def _sending(view: _View, marks: ExchangeMarks, rows: list[TruthRow], first: Sight, last: Sight) -> list[TrueSpan]:
    """``send``, with the wait for 100 (Continue) in its middle where the client waited."""
    head = view.sent(marks.head_end - 1 if marks.head_end else None)
    body = view.sent(marks.body_first)
    if not marks.waited_for_continue or head is None or body is None:
        return [_span("send", first, last)]
    allowed = next(
        (r for r in rows if r.kind == "interim" and r.request == marks.request and r.facts["status"] == 100), None
    )
    came = view.usable(allowed.facts["offset"]) if allowed is not None and "offset" in allowed.facts else None
    until = came if came is not None and came.at <= body.at else body
    return [_span("send", first, head), _span("continue", head, until), _span("send", body, last)]


def _answering(
    exchange: TrueExchange, view: _View, served: ServedExchange, rows: list[TruthRow], last: Sight | None
) -> list[TrueSpan]:
    interim = [view.usable(r.facts.get("offset")) for r in rows if r.kind == "interim" and r.request == served.request]
    exchange.interim_at = [sight.at for sight in interim if sight is not None]
    head = view.usable(served.headers_offset)
    if last is None or head is None:
        return []
    exchange.response_packet = head.packet
    # An answer that begins before the request has ended leaves nothing to wait for.
    spans = [_span("wait", last, head)] if head.at >= last.at else []
    for event in served.events:
        usable = view.usable(event.offset + event.wire_bytes - 1)
        seen = view.observed.server.seen(event.offset + event.wire_bytes - 1)
        exchange.events.append(
            TrueEvent(
                kind=event.kind,
                seen_at=seen.at if seen else None,
                deliverable_at=usable.at if usable else None,
                packet=usable.packet if usable else None,
                size_bytes=event.size_bytes,
            )
        )
    end = _end(view, served, rows)
    return [*spans, _span("transfer", head, end)] if end is not None else spans


def _end(view: _View, served: ServedExchange, rows: list[TruthRow]) -> Sight | None:
    """The last octet of the answer; FIN for a body that only the end delimits; the last octet that came otherwise."""
    framing = next((r.facts["framing"] for r in rows if r.kind == "headers" and r.request == served.request), None)
    if framing == "close" and served.response_end_offset is not None:
        return view.observed.server.fin
    if served.response_end_offset is not None:
        whole = view.usable(served.response_end_offset - 1)
        if whole is not None:
            return whole
    return _broken_off(view, served, rows)


def _broken_off(view: _View, served: ServedExchange, rows: list[TruthRow]) -> Sight | None:
    """The event that ended it: the record with RST_STREAM, or the FIN or RST of the server; else the last octet that came."""
    fault = next(
        (r.facts for r in rows if r.kind == "fault" and r.request == served.request and "offset" in r.facts), None
    )
    if fault is not None and fault["wire_bytes"]:
        return view.usable(fault["offset"] + fault["wire_bytes"] - 1)
    passage = view.observed.server
    if fault is not None and (passage.reset or passage.fin):
        return passage.reset or passage.fin
    ends = [view.usable(e.offset + e.wire_bytes - 1) for e in served.events]
    come = [sight for sight in ends if sight is not None]
    return come[-1] if come else view.usable(served.headers_offset)


def _connection(built: Built, run: ConnectionRun, end: Endpoint, observed: Observed) -> TrueConnection:
    syn, syn_ack, ack = observed.client.syn, observed.first_syn_ack, observed.handshake_ack
    again: dict[str, Counter[str]] = {"client": Counter(), "server": Counter()}
    lost: Counter[str] = Counter()
    for sighting in built.sightings:
        if _of(end, parse(sighting.frame)):
            side = "client" if sighting.from_client else "server"
            lost[side] += sighting.fate.startswith("drop")
            again[side][sighting.kind] += sighting.kind in _RESENT
    return TrueConnection(
        client=_text(end.local),
        server=_text(end.remote),
        plan=run.number,
        winner=end is run.winner,
        syn_at=syn.at if syn else None,
        syn_packet=syn.packet if syn else None,
        syn_ack_at=syn_ack.at if syn_ack else None,
        syn_ack_packet=syn_ack.packet if syn_ack else None,
        ack_at=ack.at if ack else None,
        ack_packet=ack.packet if ack else None,
        syns=observed.syns,
        client_packets=observed.client.packets,
        server_packets=observed.server.packets,
        sent_again={side: {kind: n for kind, n in counts.items() if n} for side, counts in again.items()},
        lost={side: lost[side] for side in ("client", "server")},
        tls=_tls_facts(run) if end is run.winner else None,
        outcome=run.outcome if end is run.winner or run.winner is None else (end.failure or "abandoned"),
    )


def _tls_facts(run: ConnectionRun) -> dict[str, Any] | None:
    session = run.session
    if session is None:
        return None
    return {
        "version": f"TLSv{session.version}",
        "cipher_suite": session.suite.name,
        "alpn": session.alpn,
        "resumed": session.resumed,
        "hello_retry_request": session.retried,
    }


def _of(end: Endpoint, item: object) -> bool:
    addresses = {(getattr(item, "source", b""), getattr(item, "source_port", 0))}
    addresses.add((getattr(item, "destination", b""), getattr(item, "destination_port", 0)))
    return addresses == {(end.local.address, end.local.port), (end.remote.address, end.remote.port)}


def _text(place: Place) -> str:
    address = str(ipaddress.ip_address(place.address))
    return f"[{address}]:{place.port}" if ":" in address else f"{address}:{place.port}"
