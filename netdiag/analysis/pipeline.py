"""The one pipeline: packets → connections → segments → TLS records → messages → exchanges → phases. A newcomer starts here.

``analyse`` reads top to bottom; every step takes tables and returns tables. ``part`` has the steps for a set of whole connections,
``parts`` puts together what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from netdiag.analysis import names
from netdiag.analysis.gather import Gathered, gather
from netdiag.analysis.only_by_icmp import OnlyByIcmp
from netdiag.analysis.over_udp import OverUdp
from netdiag.analysis.pairing import pair
from netdiag.analysis.part import Context
from netdiag.analysis.parts import Parts
from netdiag.analysis.rows import Rows
from netdiag.analysis.sharing import Runner, one_by_one
from netdiag.analysis.storage import InMemory, Loaded, Storage
from netdiag.analysis.unreachable import unreachable
from netdiag.records.anomaly import Anomaly
from netdiag.records.connection import Connection
from netdiag.records.dns import NameResolution
from netdiag.records.exchange import Exchange
from netdiag.wire.connections import Grouped, group
from netdiag.wire.icmp import IcmpError
from netdiag.wire.tables import Window

if TYPE_CHECKING:
    from netdiag.protocols.tls.keylog import KeyLog


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


def analyse(
    windows: Iterable[Window],
    *,
    keylog: Callable[[], KeyLog | None] = lambda: None,
    run: Runner = one_by_one,
    storage: Storage | None = None,
    size_bytes: int = 0,
    in_full: bool = False,
) -> Analysed:
    """Everything a capture says. ``keylog`` is asked for after the last window, when embedded secrets are known too.

    ``run`` may work on several windows or parts at once; ``storage`` keeps the packets of a capture of ``size_bytes`` (in memory where none is given).
    ``in_full``: all records are going to be asked for.
    """
    kept = storage or InMemory()
    gathered = gather(windows, lambda packets, end: kept.add(packets, end / max(size_bytes, end, 1)), run)
    ends_at = gathered.last_at or 0
    load = [partial(_group, one, gathered) for one in kept.partitions(run)]
    messages = names.in_datagrams(gathered.datagrams, gathered.buffer, gathered.reassembled)
    known = _addresses(names.resolutions(messages))
    context = Context(keylog=keylog(), capture_ends_at=ends_at, addresses=known, refusals={}, in_full=in_full)
    only_by_icmp = OnlyByIcmp(gathered.icmp)

    def refusals(grouped: Grouped) -> dict[int, IcmpError]:
        only_by_icmp.saw(grouped)
        return unreachable(grouped, gathered.icmp)

    parts = Parts(load, context, refusals, kept, run)
    over_udp = OverUdp(gathered, first_id=len(parts))
    quoted = only_by_icmp.connections(gathered.buffer, first_id=len(parts) + len(over_udp.connections))
    found = names.resolutions([*messages, *parts.name_messages])
    lookups = pair(found, [*parts.dials(_addresses(found), known), *over_udp.dials()])
    return Analysed(
        gathered=gathered,
        connections=_joined(parts.connections, [*over_udp.connections, *quoted]),
        resolutions=names.with_connections(found, lookups),
        exchanges=parts.exchanges(lookups, over_udp.drafts(lookups, ends_at)),
        anomalies=(*gathered.anomalies, *parts.anomalies),
        opened=parts.opened,
    )


def _group(load: Callable[[], Loaded], gathered: Gathered) -> Grouped:
    packets, buffer = load()
    return group(packets, gathered.buffer if buffer is None else buffer, gathered.tcp_last_at)


def _addresses(resolutions: Iterable[NameResolution]) -> frozenset[str]:
    return frozenset(address for r in resolutions for address in r.addresses)


def _joined(first: Sequence[Connection], then: Sequence[Connection]) -> Sequence[Connection]:
    return (
        Rows(len(first) + len(then), lambda i: first[i] if i < len(first) else then[i - len(first)]) if then else first
    )
