"""The connections of a capture as a table, and the frames behind one request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from netdiag.export.terminal.page import MUTED, STRONG, Page
from netdiag.export.terminal.tables import Column, Row, table
from netdiag.records.analysis import Analysis
from netdiag.records.connection import Connection
from netdiag.records.exchange import Exchange
from netdiag.records.labels import connection_of, host_of, protocol_name, request_label, tls_version_name
from netdiag.records.timing import Phase, PhaseName
from netdiag.sanitise import one_line
from netdiag.units import format_bytes, format_duration, format_ms

if TYPE_CHECKING:
    from netdiag.records.lanes import ExchangeLanes, LanePacket

_COLUMNS = (
    Column("#", right=True),
    Column("client", flexible=True, droppable=True),
    Column("server", flexible=True, least=21),
    Column("name", flexible=True),
    Column("speaks"),
    Column("packets", right=True, spare=True),
    Column("sent", right=True, droppable=True),
    Column("received", right=True, spare=True),
    Column("missing", right=True, flexible=True, least=8),
    Column("RTT ms", right=True),
    Column("resent", right=True, droppable=True),
    Column("lasted", right=True),
    Column("ended", droppable=True),
)
_MOST_PACKETS = 400
_MOST_RUNS = 24
"""Of consecutive frames in a display filter."""


def connections_table(analysis: Analysis, *, width: int, ascii_only: bool = False) -> list[Text]:
    """One line per connection."""
    page = Page(width, ascii_only=ascii_only)
    if not analysis.connections:
        page.line(("no connection found", STRONG))
    else:
        table(page, _COLUMNS, [_row(connection) for connection in analysis.connections])
    return page.lines


def _row(c: Connection) -> Row:
    client, server = c.sides.client, c.sides.server
    missing_bytes = client.missing_bytes + server.missing_bytes
    cells = (
        str(c.id),
        str(c.client),
        str(c.server),
        one_line((c.tls.sni if c.tls else None) or "", most=80),
        _speaks(c),
        f"{client.packets + server.packets:,}",
        format_bytes(client.payload_bytes),
        format_bytes(server.payload_bytes),
        format_bytes(missing_bytes) if missing_bytes else "",
        format_ms(c.min_rtt_ns, digits=2 if c.min_rtt_ns is not None and c.min_rtt_ns < 10_000_000 else 1),
        f"{client.retransmitted_segments + server.retransmitted_segments:,}",
        format_duration(c.last_at - c.first_at) if c.last_at >= c.first_at else "–",
        _ended(c),
    )
    return Row(cells)


def _speaks(c: Connection) -> str:
    tls = tls_version_name(c.tls.version) if c.tls and c.tls.version else "TLS" if c.tls else ""
    over = {"dns-over-https": "DoH", "dns-over-tls": "DoT"}.get(c.application or "", "")
    http = protocol_name(c.http_version) if c.http_version else ""
    became = "WebSocket" if c.application == "websocket" else ""
    inside = " ".join(part for part in (over, http, became) if part) or one_line(c.application or "", most=12)
    if c.transport == "quic":
        inside = inside.replace("quic", "QUIC") or "QUIC"
    return " ".join(part for part in (inside, tls) if part) or "–"


def _ended(c: Connection) -> str:
    return "open" if c.close_reason is None else f"{c.close_reason}" + (f" by {c.closed_by}" if c.closed_by else "")


_PHASE_COLUMNS = (
    Column("phase"),
    Column("ms", right=True),
    Column("first", right=True),
    Column("last", right=True),
    Column("clock"),
    Column("method"),
)


def _phase_row(phase: Phase) -> Row:
    frames = _frame(phase.first_packet), _frame(phase.last_packet)
    return Row((str(phase.name), format_ms(phase.duration_ns, digits=3), *frames, str(phase.clock), str(phase.method)))


def packets_table(
    analysis: Analysis, exchange: Exchange, lanes: ExchangeLanes | None, *, width: int, ascii_only: bool = False
) -> list[Text]:
    """The evidence of one request: each phase's frames, every packet where they are known, and Wireshark display filters."""
    page = Page(width, ascii_only=ascii_only)
    connection = connection_of(analysis, exchange.connection_id)
    label = request_label(exchange)
    page.line((f"#{exchange.id}  {label}  " if label else f"#{exchange.id}  ", STRONG), host_of(exchange, connection))
    table(page, _PHASE_COLUMNS, [_phase_row(phase) for phase in exchange.phases])
    if lanes is not None and lanes.packets:
        page.blank()
        table(page, _PACKET_COLUMNS, [_packet_row(p, exchange) for p in lanes.packets[:_MOST_PACKETS]])
        left_out = len(lanes.packets) - _MOST_PACKETS + lanes.left_out
        if left_out > 0:
            page.line((f"{left_out:,} more packets", MUTED))
    page.blank()
    page.line(("Wireshark display filters", STRONG))
    for what, text in _filters(analysis, exchange, lanes):
        page.line((f"  {what}", MUTED))
        page.wrapped(4, text)
    return page.lines


def _filters(analysis: Analysis, exchange: Exchange, lanes: ExchangeLanes | None) -> list[tuple[str, str]]:
    frames, connection = frames_of(exchange), connection_of(analysis, exchange.connection_id)
    found = []
    if connection is not None:
        ends = {connection.client, connection.server}
        again = any(c.id != connection.id and {c.client, c.server} == ends for c in analysis.connections)
        found.append(("this connection", connection_filter(connection, its_time_only=again)))
    if frames:
        found.append(("this request", request_filter(exchange, connection, lanes)))
        found.append(("its milestones", f"frame.number in {{{', '.join(str(f) for f in frames)}}}"))
    return found


_PACKET_COLUMNS = (
    Column("frame", right=True),
    Column("ms", right=True),
    Column("from"),
    Column("octets", right=True),
    Column("kind"),
)


def _packet_row(packet: LanePacket, exchange: Exchange) -> Row:
    at = format_ms(packet.at - exchange.started_at, digits=3)
    kind = "syn-ack" if str(packet.kind) == "syn" and packet.side == "server" else str(packet.kind)
    return Row((str(packet.number), at, packet.side, f"{packet.payload_bytes:,}", kind))


def _frame(number: int | None) -> str:
    return "–" if number is None else str(number)


def frames_of(exchange: Exchange) -> list[int]:
    """The frame numbers that the phases of an exchange begin and end with, and its request's and response's."""
    numbers = [n for p in exchange.phases for n in (p.first_packet, p.last_packet)]
    numbers += [exchange.request_packet, exchange.response_packet]
    return sorted({number for number in numbers if number is not None})


def connection_filter(connection: Connection, *, its_time_only: bool = False) -> str:
    """A display filter for one connection, by addresses and ports: ``tcp.stream`` numbers depend on Wireshark's settings.

    ``its_time_only``: another connection of the same endpoints is in the capture.
    """
    version = "ipv6" if ":" in connection.server.address else "ip"
    transport = "udp" if connection.transport == "quic" else "tcp"
    hosts: Sequence[str] = [f"{version}.addr == {e.address}" for e in (connection.client, connection.server)]
    ports = [f"{transport}.port == {e.port}" for e in (connection.client, connection.server)]
    alone = " && ".join([*hosts, *ports])
    return f"{alone} && {_between(connection.first_packet, connection.last_packet)}" if its_time_only else alone


def request_filter(exchange: Exchange, connection: Connection | None, lanes: ExchangeLanes | None = None) -> str:
    """The frames of a request and of its name lookup: listed where the list is short, else by connection, first and last."""
    lookups = [n for p in exchange.phases if p.name is PhaseName.DNS for n in (p.first_packet, p.last_packet)]
    lookup = {number for number in lookups if number is not None}
    listed = [p.number for p in lanes.packets] if lanes is not None and not lanes.left_out else []
    runs = _runs(sorted({*listed, *lookup}))
    if listed and len(runs) <= _MOST_RUNS:
        return f"frame.number in {{{', '.join(f'{a}..{b}' if a < b else str(a) for a, b in runs)}}}"
    frames = sorted({*frames_of(exchange), *listed} - lookup) or frames_of(exchange)
    if connection is None:
        return _between(frames[0], frames[-1])
    # Wireshark matches the addresses of a packet that an ICMP error quotes, too.
    error = "icmpv6" if ":" in connection.server.address else "icmp"
    own = f"{connection_filter(connection)} && {_between(frames[0], frames[-1])} && !{error}"
    return f"({own}) || frame.number in {{{', '.join(map(str, sorted(lookup)))}}}" if lookup else own


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Consecutive numbers as (first, last)."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _between(first: int | None, last: int | None) -> str:
    return f"frame.number >= {first} && frame.number <= {last}"
