"""The one pipeline: packets → connections → segments → TLS records → messages → exchanges → phases. A newcomer starts here.

``analyse`` reads top to bottom; every step takes tables and returns tables.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from netdiag.analysis import names
from netdiag.analysis.dialogue import Dialogue
from netdiag.analysis.drafts import Draft, path_rtt_ns
from netdiag.analysis.gather import Gathered, gather
from netdiag.analysis.hearing import hear_all
from netdiag.analysis.held_up import HeldUp
from netdiag.analysis.numbered import numbered
from netdiag.analysis.pairing import Dial, Lookup, pair
from netdiag.analysis.requests import requests_of
from netdiag.analysis.unopened import Unopened, UnopenedTurns, unopened_turns
from netdiag.analysis.vantage import vantage
from netdiag.protocols.tls.keylog import KeyLog
from netdiag.records.anomaly import Anomaly
from netdiag.records.connection import Connection
from netdiag.records.dns import NameResolution
from netdiag.records.exchange import Exchange
from netdiag.wire.connections import track
from netdiag.wire.measure import measure
from netdiag.wire.segments import segment
from netdiag.wire.tables import Window
from netdiag.wire.tls_records import chain


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
    flows = track(gathered.packets, gathered.buffer)
    segments = segment(flows)
    table = measure(flows, segments, gathered.buffer)
    records = chain(gathered.buffer, segments)
    connections = [_located(table.record(i)) for i in range(len(table))]
    ports = {c.id: c.server.port for c in connections}
    dialogues = hear_all(gathered.buffer, segments, records, ports, keylog())
    connections = [_described(c, dialogues.get(c.id)) for c in connections]
    messages = names.in_datagrams(gathered.datagrams, gathered.buffer, gathered.reassembled)
    for connection_id, dialogue in dialogues.items():
        messages += names.in_stream(dialogue.dns_messages, connections[connection_id])
    found = names.resolutions(messages)
    lookups = pair(found, [d for c in connections if (d := _dial(c, dialogues.get(c.id))) is not None])
    held_up = {i: HeldUp(table.stalls, i) for i in set(table.stalls.connection.tolist())}
    drafts = _drafts(connections, dialogues, lookups, held_up, gathered.last_at or 0)
    return Analysed(
        gathered=gathered,
        connections=connections,
        resolutions=names.with_connections(found, lookups),
        exchanges=numbered(drafts),
        anomalies=(*gathered.anomalies, *_anomalies(dialogues)),
        opened=sum(1 for d in dialogues.values() if d.session is not None and d.session.decrypted),
    )


def _located(connection: Connection) -> Connection:
    return dataclasses.replace(connection, vantage=vantage(connection.server_rtt_ns, connection.client_rtt_ns))


def _described(connection: Connection, dialogue: Dialogue | None) -> Connection:
    """With what the octets say."""
    if dialogue is None:
        return connection
    return dataclasses.replace(
        connection,
        tls=dialogue.session,
        http_version=dialogue.http_version,
        application=dialogue.application,
        proxied=dialogue.proxied,
    )


_NEXT_SYN_NS = 1_000_000_000


def _dial(connection: Connection, dialogue: Dialogue | None) -> Dial | None:
    """The connection as an attempt to reach an address."""
    if connection.syn_at is None:
        return None
    failed_at = None
    if connection.close_reason == "refused":
        failed_at = connection.closed_at
    elif connection.syn_ack_at is None and not connection.sides.server.packets:
        # The client gives up at the earliest when the next SYN would be due, and waits twice as long for each.
        failed_at = connection.last_at + max(_NEXT_SYN_NS, connection.last_at - connection.syn_at)
    return Dial(
        connection_id=connection.id,
        client=connection.client.address,
        server=connection.server.address,
        syn_at=connection.syn_at,
        names=_names(connection, dialogue),
        failed_at=failed_at,
    )


def _names(connection: Connection, dialogue: Dialogue | None) -> frozenset[str]:
    """What the server was called: SNI and the host of the first request. A proxy's own name is in neither."""
    if dialogue is None or dialogue.proxied is not None:
        return frozenset()
    hosts = [leg.turns[0].authority for leg in dialogue.legs if leg.turns]
    if connection.tls is not None:
        hosts.append(connection.tls.sni)
    return frozenset(
        host.rpartition(":")[0].lower() or host.lower() if host.rpartition(":")[2].isdigit() else host.lower()
        for host in hosts
        if host
    )


def _drafts(
    connections: Sequence[Connection],
    dialogues: Mapping[int, Dialogue],
    lookups: Mapping[int, Lookup],
    held_up: Mapping[int, HeldUp],
    capture_ends_at: int,
) -> list[Draft]:
    told = _unopened(connections, dialogues)
    return [
        draft
        for connection in connections
        for draft in requests_of(
            connection,
            dialogues.get(connection.id),
            unopened=told.get(connection.id, {}),
            lookup=lookups.get(connection.id),
            held_up=held_up.get(connection.id),
            capture_ends_at=capture_ends_at,
        )
    ]


def _unopened(
    connections: Sequence[Connection], dialogues: Mapping[int, Dialogue]
) -> dict[int, dict[int, UnopenedTurns]]:
    """Turns of all sessions without keys, by connection and leg; the grammar looks at all of them at once."""
    places: list[tuple[int, int]] = []
    sessions: list[Unopened] = []
    for connection_id, dialogue in dialogues.items():
        for place, leg in enumerate(dialogue.legs):
            if leg.keyless is not None:
                places.append((connection_id, place))
                rtt_ns = path_rtt_ns(connections[connection_id]) or 0
                sessions.append(Unopened(dialogue.session, *leg.keyless, rtt_ns))
    found: dict[int, dict[int, UnopenedTurns]] = {}
    for (connection_id, place), told in zip(places, unopened_turns(sessions), strict=True):
        found.setdefault(connection_id, {})[place] = told
    return found


def _anomalies(dialogues: Mapping[int, Dialogue]) -> Iterable[Anomaly]:
    for connection_id, dialogue in dialogues.items():
        for anomaly in dialogue.anomalies:
            yield dataclasses.replace(anomaly, connection_id=connection_id)
