"""What stands beside a bar: why the phase is as long as it is, in a few words with numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from netdiag.records.analysis import Analysis
from netdiag.records.connection import Connection, Vantage
from netdiag.records.dns import NameResolution
from netdiag.records.exchange import Exchange
from netdiag.records.gaps import gaps
from netdiag.records.labels import connection_of
from netdiag.records.tcp_info import TcpInfo
from netdiag.records.timing import Clock, Method, Phase, PhaseName
from netdiag.records.tls import TlsSession
from netdiag.sanitise import one_line
from netdiag.units import format_bytes, format_ms_readably


class Notes:
    """Writes the notes for one analysis; looks up what belongs to an exchange once."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._resolutions: dict[int, list[NameResolution]] = {}
        for resolution in analysis.resolutions:
            if resolution.connection_id is not None:
                self._resolutions.setdefault(resolution.connection_id, []).append(resolution)

    def of(self, exchange: Exchange, phase: Phase, digits: int) -> str:
        """The note of one phase of one exchange."""
        connection = connection_of(self._analysis, exchange.connection_id)
        parts = [
            _certainty(exchange, phase, digits),
            *self._reasons(exchange, phase, connection, digits),
            _loss(exchange, phase, connection, digits),
            _window(phase, digits),
            _clock(exchange, phase),
        ]
        return ", ".join(part for part in parts if part)

    def _reasons(self, exchange: Exchange, phase: Phase, connection: Connection | None, digits: int) -> list[str]:
        if phase.name is PhaseName.DNS:
            return _dns(self._resolutions.get(exchange.connection_id, []) if exchange.connection_id is not None else [])
        writer = _WRITERS.get(phase.name)
        return writer(exchange, connection, digits) if writer else []


def _dns(resolutions: Sequence[NameResolution]) -> list[str]:
    if not resolutions:
        return []
    types = " ".join(dict.fromkeys(one_line(r.type, most=10) for r in resolutions))
    resolvers = " ".join(dict.fromkeys(r.resolver.address for r in resolutions))
    again = sum(r.attempts - 1 for r in resolutions)
    others = len({r.name for r in resolutions} - {r.name for r in resolutions if r.addresses})
    return [
        types,
        f"resolver {resolvers}",
        f"{again} repeated" if again else "",
        f"{others} other name{'s' if others > 1 else ''} tried" if others else "",
    ]


def _tcp(exchange: Exchange, connection: Connection | None, digits: int) -> list[str]:
    if connection is None:
        return []
    rtt = connection.handshake_rtt_ns
    retries, tried = connection.syn_retries, exchange.fallback_ns
    return [
        f"RTT {format_ms_readably(rtt, digits=digits)}" if rtt is not None else "",
        f"another address tried {format_ms_readably(tried, digits=digits)} earlier" if tried is not None else "",
        _elsewhere(connection, digits),
        f"SYN sent {retries + 1} times" if retries else "",
        _stalled(_back_off_ns(exchange, rtt), "back-off", digits) if retries else "",
    ]


def _elsewhere(connection: Connection, digits: int) -> str:
    """Where the capture was not taken at the client: the other half of the path, which lies between phases there."""
    beyond_ns = connection.client_rtt_ns
    if beyond_ns is None or connection.vantage not in (Vantage.SERVER, Vantage.MIDDLE):
        return ""
    place = "at the server" if connection.vantage is Vantage.SERVER else "on the way"
    return f"captured {place}: {format_ms_readably(beyond_ns, digits=digits)} to the client and back"


def _back_off_ns(exchange: Exchange, rtt_ns: int | None) -> int:
    """From the first SYN to the one that was answered; no round trip, and nobody's work."""
    spent_ns = sum(phase.duration_ns for phase in exchange.phases if phase.name is PhaseName.TCP)
    return max(0, spent_ns - rtt_ns) if rtt_ns is not None else 0


def _tls(exchange: Exchange, connection: Connection | None, digits: int) -> list[str]:
    session = connection.tls if connection else None
    if session is None:
        return []
    trips = session.round_trips
    flight = session.certificate_bytes if session.certificate_bytes is not None else session.server_flight_bytes
    flight_name = "certificates" if session.certificate_bytes is not None else "server flight"
    return [
        f"{trips} round trip{'s' if trips != 1 else ''}" if trips is not None else "",
        "resumed" if session.resumed else "",
        "False Start" if session.false_start else "",
        _retry(session, digits),
        f"0-RTT {session.early_data}" if session.early_data else "",
        f"{flight_name} {format_bytes(flight)}" if flight is not None and not session.resumed else "",
        _tls_shares(exchange, connection, digits),
    ]


def _retry(session: TlsSession, digits: int) -> str:
    took = session.hello_retry_ns
    return _stalled(took, "HelloRetryRequest", digits) or ("HelloRetryRequest" if session.hello_retry_request else "")


def _tls_shares(exchange: Exchange, connection: Connection | None, digits: int) -> str:
    """``path 40.0 + server ≤ 2.0 + client 1.0``: of the handshake from the last ClientHello on. Loss is in none of them."""
    if connection is None or connection.tls is None:
        return ""
    session, rtt_ns = connection.tls, connection.server_rtt_ns
    rtt_ns = connection.handshake_rtt_ns if rtt_ns is None else rtt_ns
    if rtt_ns is None or session.server_flight_ns is None or session.client_finish_ns is None:
        return ""
    lost_ns = sum(phase.loss_ns or 0 for phase in exchange.phases if phase.name is PhaseName.TLS)
    there_ns = min(rtt_ns, session.server_flight_ns)
    back_ns = min(connection.client_rtt_ns or 0, session.client_finish_ns)  # next to the server the path lies here
    server_ns = max(0, session.server_flight_ns - there_ns - lost_ns)
    shares_ns = there_ns + back_ns, server_ns, session.client_finish_ns - back_ns
    path, server, client = (format_ms_readably(ns, digits=digits) for ns in shares_ns)
    return f"path {path} + server ≤ {server} + client {client}"


def _queue(exchange: Exchange, connection: Connection | None, digits: int) -> list[str]:
    return [f"for the set-up by #{exchange.opener_id}" if exchange.opener_id is not None else "for a connection"]


def _send(exchange: Exchange, connection: Connection | None, digits: int) -> list[str]:
    size = format_bytes(exchange.request_bytes) if exchange.request_bytes is not None else ""
    early = "answered before its end" if exchange.answered_early else ""
    kernel = _kernel(connection)
    if kernel is None:
        return [size, early, _stalled(exchange.upload_window_ns, "server's HTTP/2 window closed", digits)]
    resent, window_ns = kernel.total_retransmissions, kernel.receive_window_limited_ns
    return [
        size,
        f"kernel resent {resent} on this connection" if resent else "",
        _stalled(window_ns, "window full", digits) if window_ns else "",
    ]


def _kernel(connection: Connection | None) -> TcpInfo | None:
    """What the kernel says, where no packets say it better."""
    return None if connection is None or connection.client_known_by != "recording" else connection.kernel


def _continue(exchange: Exchange, connection: Connection | None, digits: int) -> list[str]:
    return ["for 100 Continue"]


def _wait(exchange: Exchange, connection: Connection | None, digits: int) -> list[str]:
    path, think, lost = exchange.wait_path_ns, _longest_think_ns(exchange), exchange.wait_loss_ns
    interim = " ".join(str(response.status) for response in exchange.interim)
    if path is not None and think is not None:
        loss = f"loss {format_ms_readably(lost, digits=digits)} + " if lost and 100 * lost >= path + think else ""
        server = _think(exchange.wait_think_lo_ns, think, digits)
        split = f"path {format_ms_readably(path, digits=digits)} + {loss}{server}"
    else:
        split = f"server ≤ {format_ms_readably(think, digits=digits)}" if think is not None else ""
    return [split, f"interim {interim}" if interim else ""]


def _think(least_ns: int | None, most_ns: int, digits: int) -> str:
    """``server ≤ 300.0``; ``server 260.0 to 300.0`` where an acknowledgement proves some of it."""
    most = format_ms_readably(most_ns, digits=digits)
    if not least_ns or 10 * least_ns < most_ns:
        return f"server ≤ {most}"
    least = format_ms_readably(least_ns, digits=digits)
    return f"server {most}" if least == most else f"server {least} to {most}"


def _longest_think_ns(exchange: Exchange) -> int | None:
    """The server's part of the wait at most: where the wait itself has bounds, of the longest wait that they allow."""
    if exchange.wait_think_ns is None:
        return None
    beyond = (phase.hi_ns - phase.duration_ns for phase in exchange.phases if phase.name is PhaseName.WAIT)
    return exchange.wait_think_ns + sum(beyond)


def _transfer(exchange: Exchange, connection: Connection | None, digits: int) -> list[str]:
    size = format_bytes(exchange.response_bytes) if exchange.response_bytes is not None else ""
    kernel = _kernel(connection)
    if kernel is not None:
        late = kernel.received_out_of_order
        return [size, f"kernel saw {late} out of order on this connection" if late else ""]
    return [
        size,
        _stalled(exchange.download_window_ns, "client's HTTP/2 window closed", digits),
    ]


def _loss(exchange: Exchange, phase: Phase, connection: Connection | None, digits: int) -> str:
    """``loss 80.1`` where it struck, ``loss 0.0 to 280.1`` where a part is told by the packet count alone; ``no loss`` in the transfer is
    said, too, where there was none in all of the exchange."""
    if exchange.loss_ns is None or _kernel(connection) is not None:
        return ""
    if phase.name is PhaseName.WAIT and exchange.wait_loss_ns:
        return ""  # it stands in the sum
    if phase.loss_hi_ns is not None and phase.loss_ns is not None:
        lowest, highest = (format_ms_readably(ns, digits=digits) for ns in (phase.loss_ns, phase.loss_hi_ns))
        return f"loss {lowest} to {highest}"
    nowhere = phase.name is PhaseName.TRANSFER and not exchange.loss_ns and exchange.loss_hi_ns is None
    return _stalled(phase.loss_ns, "loss", digits) or ("no loss" if nowhere else "")


def _window(phase: Phase, digits: int) -> str:
    """``server's window full 700.0``: whose window stopped this phase's sender."""
    whose = "server" if phase.name in (PhaseName.SEND, PhaseName.CONTINUE) else "client"
    return _stalled(phase.window_ns, f"{whose}'s window full", digits)


def _stalled(duration_ns: int | None, word: str, digits: int) -> str:
    return f"{word} {format_ms_readably(duration_ns, digits=digits)}" if duration_ns else ""


def _deliver(exchange: Exchange, connection: Connection | None, digits: int) -> list[str]:
    return ["client read late"]


_WRITERS: dict[PhaseName, Callable[[Exchange, Connection | None, int], list[str]]] = {
    PhaseName.QUEUE: _queue,
    PhaseName.TCP: _tcp,
    PhaseName.TLS: _tls,
    PhaseName.SEND: _send,
    PhaseName.CONTINUE: _continue,
    PhaseName.WAIT: _wait,
    PhaseName.TRANSFER: _transfer,
    PhaseName.DELIVER: _deliver,
}


def _certainty(exchange: Exchange, phase: Phase, digits: int) -> str:
    """``± 5.0`` or the bounds, where the duration is not exact; the method's name where there are no bounds, unless the report's head
    has said of all requests without keys how they are told."""
    if phase.method is Method.EXACT:
        return ""
    below, above = phase.duration_ns - phase.lo_ns, phase.hi_ns - phase.duration_ns
    if below == above == 0:
        return "" if exchange.protocol is None and phase.method is Method.GRAMMAR else str(phase.method)
    if below == above:
        return f"± {format_ms_readably(above, digits=digits)}"
    return f"{format_ms_readably(phase.lo_ns, digits=digits)} to {format_ms_readably(phase.hi_ns, digits=digits)}"


_ONLY_THE_CLIENT_KNOWS = frozenset({PhaseName.QUEUE, PhaseName.DELIVER})
_BEST_FIRST = (Clock.WIRE, Clock.KERNEL, Clock.APPLICATION)


def _clock(exchange: Exchange, phase: Phase) -> str:
    """Names the clock where it is not the best one that the exchange has; no other clock could know a queue or a late read."""
    clocks = {p.clock for p in exchange.phases}
    best = next(clock for clock in _BEST_FIRST if clock in clocks)
    return "" if phase.clock is best or phase.name in _ONLY_THE_CLIENT_KNOWS else f"{phase.clock} clock"


def unattributed(exchange: Exchange) -> str:
    """Where most of the time lies that no rule explains."""
    longest = max(gaps(exchange), key=lambda gap: gap[1] - gap[0], default=None)
    if longest is None:
        return ""
    before = [phase.name for phase in exchange.phases if phase.ended_at <= longest[0]]
    after = [phase.name for phase in exchange.phases if phase.started_at >= longest[1]]
    if before and after:
        return f"between {before[-1]} and {after[0]}"
    return f"after {before[-1]}" if before else f"before {after[0]}" if after else "the whole of it"
