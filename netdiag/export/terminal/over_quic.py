"""Connections over QUIC: what can be told of them without keys is whom they reached, and how long that took."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from netdiag.export.terminal.page import MUTED, Page
from netdiag.records.analysis import Analysis
from netdiag.records.connection import Connection
from netdiag.sanitise import one_line
from netdiag.units import format_duration

_MOST_NAMED = 3
_MOST_LOOKED_AT = 1000


def over_quic(page: Page, analysis: Analysis) -> None:
    """One line for all of them; none where there is none."""
    found = list(islice(_connections(analysis), _MOST_LOOKED_AT))[::-1]
    if not found:
        return
    count = f"{len(found):,} connection{'s' if len(found) > 1 else ''}"
    if len(found) == _MOST_LOOKED_AT:
        count = f"at least {count}"
    named = ", ".join(f"{_name(c)} ({_reached(c)})" for c in found[:_MOST_NAMED])
    more = f" and {len(found) - _MOST_NAMED:,} more" if len(found) > _MOST_NAMED else ""
    page.wrapped(0, (f"{count} over QUIC, whose requests are not read: {named}{more}", MUTED))


def _connections(analysis: Analysis) -> Iterator[Connection]:
    """From the last one on: they are numbered after those over TCP, of which there may be very many."""
    for place in range(len(analysis.connections) - 1, -1, -1):
        connection = analysis.connections[place]
        if connection.transport == "quic":
            yield connection
        elif connection.sides.client.packets or connection.sides.server.packets:
            return


def _name(connection: Connection) -> str:
    sni = connection.tls.sni if connection.tls else None
    return one_line(sni, most=80) if sni else str(connection.server)


def _reached(connection: Connection) -> str:
    if not connection.sides.server.packets:
        return "no answer"
    tls = connection.tls
    if tls is None or tls.client_hello_at is None:
        return "begun before the capture"
    ends = tls.finished_at if tls.finished_at is not None else tls.server_hello_at
    if ends is None:
        return "no handshake"
    what = "handshake" if tls.finished_at is not None else "ServerHello after"
    return f"{what} {format_duration(ends - tls.client_hello_at)}"
