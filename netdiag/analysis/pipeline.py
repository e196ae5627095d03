"""The one pipeline: packets → connections → segments → TLS records → messages → exchanges → phases. A newcomer starts here.

``analyse`` reads top to bottom; every step takes tables and returns tables. ``part`` has the steps for a set of whole connections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from netdiag.analysis import names
from netdiag.analysis.exchange_columns import ExchangeRows
from netdiag.analysis.gather import Gathered, gather
from netdiag.analysis.over_udp import OverUdp
from netdiag.analysis.pairing import pair
from netdiag.analysis.part import Part, PartExchanges
from netdiag.analysis.rows import Rows
from netdiag.protocols.tls.keylog import KeyLog
from netdiag.records.anomaly import Anomaly
from netdiag.records.connection import Connection
from netdiag.records.dns import NameResolution
from netdiag.records.exchange import Exchange
from netdiag.wire.tables import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysed:
    """What the pipeline found; the source and what is concluded from exchanges (statistics, findings) are added by ``api``."""

    gathered: Gathered
    connections: Sequence[Connection]
    resolutions: Sequence[NameResolution]
    exchanges: Sequence[Exchange]
    anomalies: tuple[Anomaly, ...]
    opened: int
    """TLS sessions that the keys opened."""


def analyse(windows: Iterable[Window], *, keylog: Callable[[], KeyLog | None] = lambda: None) -> Analysed:
    """Everything a capture says. ``keylog`` is asked for after the last window, when embedded secrets are known too."""
    gathered = gather(windows)
    part = Part(gathered.packets, gathered.buffer, keylog(), gathered.icmp)
    over_udp = OverUdp(gathered, first_id=len(part))
    messages = names.in_datagrams(gathered.datagrams, gathered.buffer, gathered.reassembled)
    found = names.resolutions([*messages, *part.name_messages()])
    lookups = pair(found, [*part.dials({address for r in found for address in r.addresses}), *over_udp.dials()])
    ends_at = gathered.last_at or 0
    return Analysed(
        gathered=gathered,
        connections=_joined(part.connections, over_udp.connections),
        resolutions=names.with_connections(found, lookups),
        exchanges=_numbered(part.exchanges(lookups, ends_at, over_udp.drafts(lookups, ends_at))),
        anomalies=(*gathered.anomalies, *part.anomalies),
        opened=part.opened,
    )


def _joined(first: Sequence[Connection], then: Sequence[Connection]) -> Sequence[Connection]:
    return (
        Rows(len(first) + len(then), lambda i: first[i] if i < len(first) else then[i - len(first)]) if then else first
    )


def _numbered(found: PartExchanges) -> ExchangeRows:
    """In the order in which they began; made when asked for."""
    order = np.lexsort((found.position, found.connection, found.columns.started_at))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    openers = found.openers()

    def make(i: int) -> Exchange:
        row = int(order[i])
        opener = openers.get(row)
        return found.draft(row).exchange(i, None if opener is None else int(place[opener]))

    return ExchangeRows(found.columns.take(order), make)
