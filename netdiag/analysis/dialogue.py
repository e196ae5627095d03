"""What one connection said: through TLS, proxies and upgrades down to HTTP turns, whatever the layers are.

``listen`` recognises what the octets are, hands them to their decoder, and goes on inside what the decoder opened: TLS with keys, a CONNECT
or SOCKS tunnel, STARTTLS. Each layer that can carry requests of its own is a ``Leg``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from netdiag.analysis import decoders
from netdiag.analysis.exchanges import delivered, handshake_marks, sent
from netdiag.analysis.marks import Mark, Marks, Milestone
from netdiag.analysis.peek import Peeked
from netdiag.protocols import proxy_protocol, sniff
from netdiag.protocols.conversation import Conversation, Http2Facts, Tunnel
from netdiag.protocols.dns import transport as dns_transport
from netdiag.protocols.turn import Turn, TurnEnd
from netdiag.records.anomaly import Anomaly
from netdiag.records.endpoint import Endpoint
from netdiag.records.exchange import CONNECT
from netdiag.records.timing import Method
from netdiag.records.tls import TlsSession
from netdiag.wire.chunk import Chunk
from netdiag.wire.chunk_records import record_views
from netdiag.wire.record_view import RecordRows, TlsRecordView

if TYPE_CHECKING:
    from netdiag.protocols.dns.timed import TimedMessage
    from netdiag.protocols.http2.columns.turns import ColumnTurns
    from netdiag.protocols.tls.keylog import KeyLog
    from netdiag.protocols.tls.moments import Handshake

M = Milestone
DNS_OVER_TLS, DNS_OVER_HTTPS = "dns-over-tls", "dns-over-https"
MOST_LAYERS = 6
"""TLS in CONNECT in TLS in CONNECT: enough for anything real."""


@dataclass(slots=True, kw_only=True)
class Leg:
    """One layer that carries requests. ``marks`` is the part of the set-up that this layer adds for its first request."""

    marks: Marks = field(default_factory=dict)
    turns: Sequence[Turn] = field(default_factory=list)
    columns: ColumnTurns | None = None
    """The same turns where they are columns."""
    gaps: bool = False
    keyless: tuple[Sequence[TlsRecordView], Sequence[TlsRecordView]] | None = None
    """Records of a TLS session that nothing opened, client's and server's: the grammar has to do."""
    http2: Http2Facts | None = None
    upgraded: bool = False
    """From HTTP/1.1: the request of stream 1 is the one that 101 answered."""
    server_name: str | None = None
    """Whom its own TLS session or its tunnel named; None where only the connection tells."""
    later: bool = False
    """Its tunnel was asked for on a connection in use: the connection's own set-up is not part of its."""


@dataclass(slots=True, kw_only=True)
class Dialogue:
    """Everything one connection said."""

    legs: list[Leg] = field(default_factory=list)
    session: TlsSession | None = None
    """The innermost TLS session: the one with the server that was asked for."""
    http_version: str | None = None
    application: str | None = None
    proxied: str | None = None
    origin: Endpoint | None = None
    """Whom a load balancer speaks for (PROXY protocol)."""
    anomalies: list[Anomaly] = field(default_factory=list)
    dns_messages: list[TimedMessage] = field(default_factory=list)
    """DNS over TCP, endpoints not yet filled in."""
    unheard: bool = False
    """It turned out too late that columns do not do: it has to be heard again without them."""

    @property
    def only_columns(self) -> Leg | None:
        """The one layer of this connection with requests, where those are columns."""
        return self.legs[0] if len(self.legs) == 1 and self.legs[0].columns is not None else None


def listen(
    client: Iterable[Chunk],
    server: Iterable[Chunk],
    *,
    keylog: KeyLog | None,
    server_port: int,
    columns: bool = False,
) -> Dialogue:
    """Decode one connection from its octets. Never raises for what they say. ``columns``: HTTP/2 may be read by columns; look at ``unheard``."""
    dialogue = Dialogue()
    _Listener(dialogue, keylog, server_port, columns).octets(client, server, {}, 0)
    return dialogue


def listen_tls(
    client: Sequence[TlsRecordView],
    server: Sequence[TlsRecordView],
    *,
    keylog: KeyLog | None,
    server_port: int,
    columns: bool = False,
) -> Dialogue:
    """The same for a connection whose TLS records are known already."""
    dialogue = Dialogue()
    _Listener(dialogue, keylog, server_port, columns).records(client, server, {}, 0)
    return dialogue


class _Listener:
    def __init__(self, dialogue: Dialogue, keylog: KeyLog | None, server_port: int, columns: bool) -> None:
        self._dialogue = dialogue
        self._keylog = keylog
        self._port = server_port
        self._columns = columns

    def octets(self, client: Iterable[Chunk], server: Iterable[Chunk], marks: Marks, layer: int) -> None:
        """A layer of plain octets."""
        asks, answers = Peeked(client), Peeked(server)
        if layer == 0 and proxy_protocol.begins(asks.prefix):
            self._dialogue.origin, rest = proxy_protocol.strip(asks)
            asks = Peeked(rest)
        kind = sniff.identify(asks.prefix, answers.prefix)
        if kind == "tls":
            self.records(list(record_views(asks)), list(record_views(answers)), marks, layer)
        elif kind == "http/1":
            self._talk(decoders.http1(asks, answers), asks, answers, marks, layer)
        elif kind == "h2":
            self._http2(asks, answers, marks, layer)
        elif kind in ("socks4", "socks5"):
            self._socks(kind, asks, answers, marks, layer)
        elif kind == "dns" or (kind is None and self._port == dns_transport.PORT):
            self._names(asks, answers, over_tls=layer > 0)
        else:
            self._other(kind, asks, answers, marks, layer)

    def records(
        self, client: Sequence[TlsRecordView], server: Sequence[TlsRecordView], marks: Marks, layer: int
    ) -> None:
        """A TLS session, and what is inside when it can be opened."""
        seen = decoders.tls(client, server, self._keylog)
        inside = {**marks, **_began(client), **handshake_marks(seen.session), **_finished(seen.handshake)}
        unread = seen.client is None and seen.server is None
        before = len(self._dialogue.legs)
        if unread or layer >= MOST_LAYERS or _mostly_cut(client) or _mostly_cut(server):
            # Records of a protocol that is known not to be HTTP are no requests.
            keyless = None if self._dialogue.application is not None else (client, server)
            self._dialogue.legs.append(Leg(marks=inside, keyless=keyless))
        else:
            half = seen.client is None or seen.server is None
            self.octets(seen.client or (), seen.server or (), inside, layer + 1)
            if (
                len(self._dialogue.legs) == before
            ):  # nothing that could be a request: a handshake that failed, another protocol
                self._dialogue.legs.append(Leg(marks=inside))
            for leg in self._dialogue.legs[before:]:
                leg.gaps |= half
        if self._dialogue.unheard:
            return
        seen.finish()
        self._dialogue.session = self._dialogue.session or seen.session
        for leg in self._dialogue.legs[before:]:
            leg.server_name = leg.server_name or seen.session.sni
        if self._port == dns_transport.OVER_TLS_PORT or "dot" in (seen.session.alpn, *seen.session.alpn_offered):
            self._dialogue.application = DNS_OVER_TLS
        self._dialogue.anomalies += seen.anomalies

    def _http2(self, asks: Peeked, answers: Peeked, marks: Marks, layer: int) -> None:
        said = decoders.http2_by_columns(asks, answers) if self._columns else decoders.http2(asks, answers)
        if said is None:
            self._dialogue.unheard = True
        else:
            self._talk(said, asks, answers, marks, layer)

    def _talk(self, said: Conversation, asks: Peeked, answers: Peeked, marks: Marks, layer: int) -> None:
        leg = Leg(marks=marks, turns=said.turns, columns=decoders.columns_of(said), http2=said.h2)
        self._dialogue.legs.append(leg)
        self._dialogue.anomalies += said.anomalies
        self._dialogue.http_version = said.protocol
        if any(dns_transport.is_over_https(fields, ()) for fields in _header_sections(leg)):
            self._dialogue.application = DNS_OVER_HTTPS
        for tunnel in said.tunnels:
            self._through(tunnel, leg, layer)
        if len(said.tunnels) > 1:  # each to somebody else: what is said of the connection is what the proxy said
            self._dialogue.session, self._dialogue.http_version = None, said.protocol
        leg.gaps = asks.gaps or answers.gaps

    def _through(self, tunnel: Tunnel, leg: Leg, layer: int) -> None:
        if tunnel.kind == "h2c":
            said = decoders.http2(tunnel.client, tunnel.server, upgraded_from=tunnel.turn)
            leg.turns = [*leg.turns, *said.turns]
            leg.http2, leg.upgraded = said.h2, True
            self._dialogue.anomalies += said.anomalies
            self._dialogue.http_version = said.protocol
        elif tunnel.kind == "connect":
            self._dialogue.proxied = "connect"
            self._inside(tunnel, leg, _asked_first(leg.turns, tunnel.turn), layer)
        else:
            self._dialogue.application = self._dialogue.application or tunnel.kind

    def _inside(self, tunnel: Tunnel, outside: Leg, asked: Turn, layer: int) -> None:
        """The target's own conversation behind a proxy's consent, ``asked`` for first by that turn."""
        later = asked.ordinal > 0
        marks = _proxy_marks(tunnel.turn, asked)
        if not later and M.PROXY_ASKED in marks:
            marks[M.PROXY_ASKED] = outside.marks.get(M.CLIENT_HELLO, marks[M.PROXY_ASKED])
        before = len(self._dialogue.legs)
        if layer < MOST_LAYERS:
            self.octets(tunnel.client, tunnel.server, marks, layer + 1)
        for leg in self._dialogue.legs[before:]:
            leg.server_name = leg.server_name or _host(tunnel.target)
            leg.later |= later

    def _socks(self, kind: str, asks: Peeked, answers: Peeked, marks: Marks, layer: int) -> None:
        self._dialogue.proxied = kind
        tunnel = decoders.socks(asks, answers)
        if tunnel is None or layer >= MOST_LAYERS:
            self._dialogue.application = kind
            return
        self.octets(tunnel.client, tunnel.server, {**marks, **_proxy_marks(tunnel.turn)}, layer + 1)

    def _names(self, asks: Peeked, answers: Peeked, *, over_tls: bool) -> None:
        self._dialogue.application = DNS_OVER_TLS if over_tls else "dns"
        found = decoders.dns(asks, answers)
        self._dialogue.dns_messages += [replace(m, transport="tls") for m in found] if over_tls else found

    def _other(self, kind: str | None, asks: Peeked, answers: Peeked, marks: Marks, layer: int) -> None:
        """Whatever it is, it may turn to TLS in the middle (RFC 3207 and many others)."""
        self._dialogue.application = kind
        client, server = after_starttls(asks, answers)
        if client:
            self.records(client, server, marks, layer)


def _header_sections(leg: Leg) -> Iterator[Sequence[tuple[str, str]]]:
    """Of all requests and answers; those that several share only once."""
    if leg.columns is not None:
        yield from leg.columns.headers()
        return
    seen: set[int] = set()
    for turn in leg.turns:
        for fields in (turn.request_headers, turn.response_headers):
            if id(fields) not in seen:
                seen.add(id(fields))
                yield fields


_HANDSHAKE, _APPLICATION_DATA = 22, 23


def _began(client: Sequence[TlsRecordView]) -> Marks:
    """The handshake's first octet, also where the snap length cut the ClientHello so that it cannot be read."""
    if not client or client[0].content_type != _HANDSHAKE or client[0].stream_offset != 0:
        return {}
    return {M.CLIENT_HELLO: Mark(client[0].first_seen_at, client[0].last_packet)}


def _finished(handshake: Handshake) -> Marks:
    """The later of both Finished. With False Start (RFC 7918) data go before the server's; what is data, and what a request, is not told
    here: the phase ends at the first request octet anyhow."""
    sent_at, delivered_at = handshake.client_finished_sent, handshake.server_finished_deliverable
    if sent_at is None or delivered_at is None or handshake.method is None:
        return {}
    return {M.TLS_FINISHED: Mark(max(sent_at, delivered_at), None, method=Method(handshake.method))}


def _mostly_cut(records: Sequence[TlsRecordView]) -> bool:
    """Most records of data lack octets: opened or not, only their headers and times tell anything."""
    rows: RecordRows | None = getattr(records, "plain", None)
    if rows is not None:
        data, cut = rows.lacking(_APPLICATION_DATA)
        return 2 * cut > data
    lacks = [r.missing_bytes > 0 for r in records if r.content_type == _APPLICATION_DATA]
    return 2 * sum(lacks) > len(lacks)


def _host(target: str | None) -> str | None:
    """Of ``host:port``; None for no target."""
    return None if target is None else target.rpartition(":")[0].strip("[]") or target


def _asked_first(turns: Sequence[Turn], consented: Turn) -> Turn:
    """A proxy may want credentials first (407, RFC 9110 section 15.5.8): the first of the CONNECTs to one target in a row up to the one it
    agreed to."""
    asked = consented
    for turn in reversed(turns[: consented.ordinal]):
        if (turn.method, turn.authority) != (CONNECT, consented.authority) or turn.end is TurnEnd.TUNNEL:
            break
        asked = turn
    return asked


def _proxy_marks(turn: Turn, asked: Turn | None = None) -> Marks:
    """First octet of the asking to the consent deliverable."""
    marks: Marks = {}
    first = (asked or turn).request_first
    if first is not None:
        marks[M.PROXY_ASKED] = sent(first)
    consent = turn.response_last or turn.response_first
    if consent is not None and M.PROXY_ASKED in marks:
        marks[M.PROXY_READY] = delivered(consent)
    return marks


_CLIENT_HELLO = (b"\x16\x03", 5, b"\x01")
"""Type and major version of the record, and the message type behind the header."""


def after_starttls(client: Iterable[Chunk], server: Iterable[Chunk]) -> tuple[list[TlsRecordView], list[TlsRecordView]]:
    """Records from the first chunk of each side that begins a TLS handshake; empty when there is none."""
    start, place, kind = _CLIENT_HELLO
    asks = iter(client)
    hello = next((c for c in asks if c.data.startswith(start) and c.data[place : place + 1] == kind), None)
    if hello is None:
        return [], []
    answers = iter(server)
    first = next((c for c in answers if c.data.startswith(start) and c.deliverable_at >= hello.first_seen_at), None)
    rest = [] if first is None else list(record_views(_from(first, answers)))
    return list(record_views(_from(hello, asks))), rest


def _from(first: Chunk, rest: Iterable[Chunk]) -> Iterable[Chunk]:
    yield first
    yield from rest
