"""Fabricated turns and connections for the analysis: a turn is its moments in milliseconds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from netdiag.protocols.turn import InterimMoment, Turn, TurnEnd
from netdiag.records.connection import Connection
from netdiag.wire.chunk import Moment
from tests.support.fabricated import T0, ns
from tests.support.fabricated import connection as fabricated

MOMENTS = (
    "request_first",
    "request_head_last",
    "request_body_first",
    "request_last",
    "response_first",
    "response_head_last",
    "response_last",
)


def at(ms: float) -> int:
    """Epoch nanoseconds of a number of milliseconds after the capture began."""
    return T0 + ns(ms)


def moment(ms: float, *, late_ms: float = 0) -> Moment:
    """Seen at ``ms`` and deliverable ``late_ms`` later; its packet number is the millisecond."""
    return Moment(at(ms), at(ms + late_ms), round(ms))


def turn(ordinal: int = 0, *, interim: dict[int, float] | None = None, **fields: Any) -> Turn:
    """``turn(request_first=0, request_last=1, response_first=50, response_last=60)``; other fields as they are."""
    moments = {name: moment(fields.pop(name)) for name in MOMENTS if name in fields}
    plain = {"protocol": "http/1.1", "method": "GET", "status": 200, "end": TurnEnd.COMPLETE} | fields
    said = [InterimMoment(status=status, moment=moment(ms)) for status, ms in (interim or {}).items()]
    return Turn(ordinal=ordinal, interim=said, **plain, **moments)


def whole(ordinal: int = 0, *, sent: float, wait: float = 50, transfer: float = 10, **fields: Any) -> Turn:
    """A request of one packet and its whole answer."""
    answer = sent + wait
    return turn(
        ordinal,
        request_first=sent,
        request_head_last=sent,
        request_last=sent,
        response_first=answer,
        response_head_last=answer,
        response_last=answer + transfer,
        **fields,
    )


def connection(**fields: Any) -> Connection:
    """A clear-text connection with a handshake from 0 to 20 ms that is still open at 1000 ms; ``client`` and ``server`` change its sides."""
    sides = fields.pop("sides", {})
    base = fabricated(tls=None)
    made = replace(
        base,
        tls=None,
        first_at=at(0),
        last_at=at(1_000),
        syn_at=at(0),
        syn_packet=1,
        syn_ack_at=at(20),
        syn_ack_packet=2,
        ack_at=at(20.1),
        ack_packet=3,
        handshake_rtt_ns=ns(20),
        min_rtt_ns=ns(20),
        server_rtt_ns=ns(20),
        client_rtt_ns=ns(0.1),
        complete=False,
        closed_by=None,
        close_reason=None,
        closed_at=None,
    )
    changed = {name: replace(getattr(made.sides, name), **values) for name, values in sides.items()}
    return replace(made, sides=replace(made.sides, **changed), **fields)
