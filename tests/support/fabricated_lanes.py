"""The lanes of one fabricated request: packets with a retransmission and a hole, TLS records, messages."""

from __future__ import annotations

from netdiag.records.lanes import ExchangeLanes, LaneHole, LaneKind, LanePacket, LaneSpan
from tests.support.fabricated import T0, connection, exchange, ns

PACKETS = [
    (12.1, "client", LaneKind.SYN, 0),
    (30.4, "server", LaneKind.SYN, 0),
    (30.5, "client", LaneKind.ACK, 0),
    (30.7, "client", LaneKind.DATA, 1448),
    (30.8, "client", LaneKind.DATA, 312),
    (49.2, "server", LaneKind.ACK, 0),
    (49.9, "server", LaneKind.DATA, 1448),
    (50.0, "server", LaneKind.DATA, 1448),
    (50.1, "server", LaneKind.DATA, 740),
    (50.3, "client", LaneKind.ACK, 0),
    (68.6, "client", LaneKind.DATA, 80),
    (69.2, "client", LaneKind.DATA, 220),
    (87.9, "server", LaneKind.DATA, 510),
    (88.0, "server", LaneKind.ACK, 0),
    (129.4, "server", LaneKind.DATA, 1448),
    (129.6, "server", LaneKind.DATA, 1448),
    (130.0, "server", LaneKind.DATA, 1448),
    (130.2, "client", LaneKind.ACK, 0),
    (130.4, "client", LaneKind.ACK, 0),
    (130.5, "server", LaneKind.DATA, 1448),
    (174.0, "server", LaneKind.RETRANSMISSION, 1448),
    (174.2, "server", LaneKind.DATA, 903),
    (174.4, "client", LaneKind.ACK, 0),
]
"""When (ms), from whom, what, octets of payload."""


def span(
    side: str, label: str, seen: float, whole: float | None, size: int, first: int, last: int, *, own: bool = True
) -> LaneSpan:
    return LaneSpan(
        side=side,
        label=label,
        seen_at=T0 + ns(seen),
        deliverable_at=None if whole is None else T0 + ns(whole),
        size_bytes=size,
        first_packet=first,
        last_packet=last,
        of_this_exchange=own,
    )


RECORDS = (
    span("client", "ClientHello", 30.7, 30.8, 1755, 6, 7),
    span("server", "ServerHello", 49.9, 49.9, 1210, 9, 9),
    span("server", "Certificate …", 49.9, 50.1, 2400, 9, 11),
    span("client", "Finished", 68.6, 68.6, 74, 13, 13),
    span("client", "application data", 69.2, 69.2, 215, 14, 14),
    span("server", "NewSessionTicket", 87.9, 87.9, 505, 15, 15, own=False),
    span("server", "application data", 129.4, 174.0, 4200, 17, 23),
    span("server", "application data", 130.5, 174.2, 2351, 22, 24),
)
MESSAGES = (
    span("client", "request head", 69.2, 69.2, 190, 14, 14),
    span("server", "response head", 129.4, 129.4, 240, 17, 17),
    span("server", "response body", 129.4, 174.2, 6200, 17, 24),
)


def lanes() -> ExchangeLanes:
    """The request of the sketch with a lost and retransmitted response segment."""
    e = exchange("dns 12.1 | tcp 18.3 | tls 38.2 | - 0.6 | send 0.2 | wait 60.0 | transfer 45.0")
    packets = tuple(
        LanePacket(number=i + 3, at=T0 + ns(at), side=side, kind=kind, payload_bytes=size)
        for i, (at, side, kind, size) in enumerate(PACKETS)
    )

    holes = (LaneHole(side="server", from_at=T0 + ns(130.0), until_at=T0 + ns(174.0), size_bytes=1448),)
    return ExchangeLanes(
        exchange=e, connection=connection(), packets=packets, records=RECORDS, messages=MESSAGES, holes=holes
    )
