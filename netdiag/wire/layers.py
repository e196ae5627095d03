"""The one table of all layers, and the loop that takes packets through it."""

from __future__ import annotations

from collections import Counter
from dataclasses import field

from netdiag.plain import plain
from netdiag.wire.codes import Inner
from netdiag.wire.cursor import Cursor, Layer
from netdiag.wire.distinct import distinct
from netdiag.wire.ip import IP_LAYERS
from netdiag.wire.link import LINK_LAYERS
from netdiag.wire.octets import Octets
from netdiag.wire.tunnels import TUNNEL_LAYERS
from netdiag.wire.udp import UDP_LAYERS
from netdiag.wire.wlan import WLAN_LAYERS

MAX_DEPTH = 32
"""Headers in one packet."""

LAYERS: dict[int, Layer] = {**LINK_LAYERS, **WLAN_LAYERS, **IP_LAYERS, **TUNNEL_LAYERS, **UDP_LAYERS}
"""What can be taken off. A code without an entry is where a packet ends: TCP, a datagram, ICMP, a fragment, or something not decoded."""


@plain(slots=True)
class Peeled:
    """Packets by the code at which no layer could be taken off any more."""

    ended: dict[int, Cursor] = field(default_factory=dict)
    cut: Counter[str] = field(default_factory=Counter)
    """Packets that ended inside a header, by layer."""


def peel(octets: Octets, cursor: Cursor) -> Peeled:
    """Take off layer after layer of all rows."""
    ended: dict[int, list[Cursor]] = {}
    cut: Counter[str] = Counter()
    for _ in range(MAX_DEPTH):
        inner: list[Cursor] = []
        for code, rows in _by_code(cursor):
            layer = LAYERS.get(code)
            if layer is None:
                ended.setdefault(code, []).append(rows)
                continue
            whole = rows.at + layer.header_bytes <= rows.end
            if not whole.all():
                cut[layer.name] += int((~whole).sum())
                rows = rows.take(whole)
            if len(rows):
                inner.append(layer.peel(octets, rows))
        if not inner:
            break
        cursor = inner[0] if len(inner) == 1 else Cursor.concat(inner)
    else:
        ended.setdefault(int(Inner.TOO_DEEP), []).append(cursor)
    return Peeled({code: Cursor.concat(parts) for code, parts in ended.items()}, cut)


def _by_code(cursor: Cursor) -> list[tuple[int, Cursor]]:
    if not len(cursor):
        return []
    first = int(cursor.code[0])
    if (cursor.code == first).all():
        return [(first, cursor)]
    return [(code, cursor.take(cursor.code == code)) for code in distinct(cursor.code).tolist()]
