"""The first lines: what was measured, on which evidence, and what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from netdiag.export.terminal.over_quic import over_quic
from netdiag.export.terminal.page import BAD, MUTED, STRONG, Page, Piece
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Outcome
from netdiag.records.labels import arm_name, cipher_name, connection_of, host_of, tls_version_name
from netdiag.records.resolved import unresolved
from netdiag.records.source import EvidenceLevel, Source
from netdiag.records.tls import TlsSession
from netdiag.sanitise import one_line
from netdiag.units import format_duration

_SAMPLE = 40
"""Making a record takes its time: so many are looked at. They are neighbours, because what is far apart in a large capture costs more."""
_MOST_ANOMALIES = _MOST_NAMES = 3
_LEAST_PATH = 20


def hosts(analysis: Analysis) -> list[str]:
    """The distinct names (with the server's address) of a probe's exchanges, or of a file's first ones, in order."""
    found: dict[str, None] = {}
    for exchange in analysis.exchanges if analysis.source.path is None else analysis.exchanges[:_SAMPLE]:
        connection = connection_of(analysis, exchange.connection_id)
        name = host_of(exchange, connection)
        address = str(connection.server) if connection else ""
        found[name if address in (name, "") else f"{name}  {address}"] = None
    names = list(found)
    # A request that never got a connection does not make its host a second one.
    return [name for name in names if not any(other.startswith(name + "  ") for other in names)]


def header(page: Page, analysis: Analysis, names: Sequence[str]) -> None:
    """Source, host (if ``names`` has only one), TLS facts, evidence level; then one line for everything that makes the result partial."""
    source = analysis.source
    right: list[Piece] = [(evidence(source), MUTED)]
    facts = [(f"  {fact}", "") for fact in _tls_facts(analysis)]
    host: list[Piece] = [(names[0], STRONG), *facts] if len(names) == 1 else []
    if source.path is not None:
        about = f"  {_file_facts(source)}"
        name = _end_of(one_line(source.path, most=1000), page.width - len(about))
        page.spread([(name, STRONG), (about, MUTED)], right, fold=True)
        if host:
            page.line(*host)
            if len(analysis.exchanges) > _SAMPLE:
                page.line((f"host and TLS as in the first {_SAMPLE} requests", MUTED))
    elif host:
        page.spread(host, right, fold=True)
    else:
        page.spread([(f"{len(names)} hosts" if names else source.kind, STRONG)], right, fold=True)
    _warnings(page, analysis)


def _end_of(path: str, most: int) -> str:
    """The file's name matters more than where the folders begin."""
    most = max(most, _LEAST_PATH)
    return path if len(path) <= most else "…" + path[len(path) - most + 1 :]


def evidence(source: Source) -> str:
    """``evidence L3: 812 packets, 0 dropped, keys``."""
    if source.evidence_level is EvidenceLevel.L0:
        return "evidence L0: application clock only"
    if source.evidence_level is EvidenceLevel.L1:
        return "evidence L1: kernel stamps, no packets"
    drops = "drops unknown" if source.dropped_packets is None else f"{source.dropped_packets:,} dropped"
    keys = "keys" if source.evidence_level is EvidenceLevel.L3 else "no keys"
    packets = f"{source.packets:,} packet{'' if source.packets == 1 else 's'}"
    return f"evidence {source.evidence_level}: {packets}, {drops}, {keys}"


def _file_facts(source: Source) -> str:
    facts = [source.format or "", ", ".join(source.link_types)]
    if source.first_at is not None and source.last_at is not None:
        facts.append(format_duration(source.last_at - source.first_at))
    return "  ".join(one_line(fact, most=60) for fact in facts if fact)


def _tls_facts(analysis: Analysis) -> list[str]:
    """Version, group and cipher where all sessions agree."""
    sessions = [connection.tls for connection in analysis.connections[:_SAMPLE] if connection.tls is not None]
    if not sessions:
        return []
    return [fact for fact in (_version(sessions), _group(sessions), _cipher(sessions)) if fact]


def _version(sessions: list[TlsSession]) -> str:
    version = _common(s.version for s in sessions)
    return tls_version_name(version) if version else ""


def _group(sessions: list[TlsSession]) -> str:
    return one_line(_common(s.group for s in sessions) or "", most=30)


def _cipher(sessions: list[TlsSession]) -> str:
    suite = _common(s.cipher_suite for s in sessions)
    return cipher_name(suite) if suite else ""


def _common(values: Iterable[str | None]) -> str | None:
    known = {value for value in values if value is not None}
    return known.pop() if len(known) == 1 else None


def _warnings(page: Page, analysis: Analysis) -> None:
    source = analysis.source
    if source.verification not in (None, "on"):
        page.line(("certificate verification OFF (--insecure): the peer may be anybody", BAD))
    if source.cut_at_byte is not None:
        rest = "what follows is what could be read" if source.packets else "no packet could be read"
        page.line((f"the file is cut or damaged at byte {source.cut_at_byte:,}: {rest}", BAD))
    if source.dropped_packets:
        page.line((f"the kernel dropped {source.dropped_packets:,} packets: gaps may look like loss", BAD))
    for arm in source.unsupported:
        page.wrapped(0, (f"{arm_name(arm.arm)} not measured: {one_line(arm.reason, most=300)}", BAD))
    if source.note:
        page.wrapped(0, (one_line(source.note, most=400), MUTED))
    if source.not_decoded:
        listed = ", ".join(f"{count:,} {one_line(reason, most=40)}" for reason, count in source.not_decoded.items())
        page.wrapped(0, (f"not decoded: {listed}", MUTED))
    _keyless(page, analysis)
    _missing_secrets(page, analysis)
    _unresolved(page, analysis)
    over_quic(page, analysis)
    _anomalies(page, analysis)


def _unresolved(page: Page, analysis: Analysis) -> None:
    """Names that nobody could give an address for."""
    failed = unresolved(analysis.resolutions)
    if failed:
        listed = ", ".join(
            f"{one_line(name, most=80)} ({one_line(why, most=30)})" for name, why in failed[:_MOST_NAMES]
        )
        more = f" and {len(failed) - _MOST_NAMES:,} more" if len(failed) > _MOST_NAMES else ""
        page.wrapped(0, (f"not resolved: {listed}{more}", MUTED if analysis.exchanges else BAD))


def _keyless(page: Page, analysis: Analysis) -> None:
    """What is missing below L3, and how to get it."""
    source = analysis.source
    if source.path is None or source.note or source.evidence_level is EvidenceLevel.L3:
        return
    if any(e.protocol is None and e.outcome is Outcome.UNKNOWN for e in analysis.exchanges[:_SAMPLE]):
        given = bool(source.secrets.entries)
        why, cure = (
            ("the session keys open nothing", "") if given else ("no session keys", "; --keylog FILE reads them")
        )
        page.wrapped(0, (f"{why}: requests are told (~) from the order and sizes of TLS records{cure}", MUTED))


def _missing_secrets(page: Page, analysis: Analysis) -> None:
    """Keys were given, and some sessions' secrets are not among them: which."""
    if not analysis.source.secrets.entries:
        return
    sessions = [c.tls for c in analysis.connections[:_SAMPLE] if c.tls is not None]
    those = "TLS sessions" if len(analysis.connections) <= _SAMPLE else "TLS sessions looked at"
    lacking = Counter(s.missing_secret for s in sessions if s.missing_secret is not None)
    for label, count in lacking.most_common(_MOST_ANOMALIES):
        named = one_line(label, most=60)
        page.wrapped(0, (f"the key log has no {named} for {count:,} of {len(sessions):,} {those}", MUTED))


def _anomalies(page: Page, analysis: Analysis) -> None:
    count = len(analysis.anomalies)
    if not count:
        return
    page.line(
        (
            f"{count:,} anomal{'y' if count == 1 else 'ies'} in the traffic"
            + (", the first:" if count > _MOST_ANOMALIES else ":"),
            MUTED,
        )
    )
    for anomaly in analysis.anomalies[:_MOST_ANOMALIES]:
        where = f"packet {anomaly.packet}" if anomaly.packet is not None else ""
        where = where or (f"connection {anomaly.connection_id}" if anomaly.connection_id is not None else "")
        page.wrapped(
            2,
            (
                f"{one_line(anomaly.protocol, most=20)} {where}: {one_line(anomaly.reason, most=300)}".replace(
                    " :", ":"
                ),
                MUTED,
            ),
        )
