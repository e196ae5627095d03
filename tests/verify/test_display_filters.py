"""The display filters that ``netdiag packets`` prints: tshark accepts them, and they select exactly the frames of the request."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest

import netdiag
from netdiag.analysis.behind import behind
from netdiag.analysis.gather import gather
from netdiag.capture.source import open_capture
from netdiag.export.terminal import connections as shown
from netdiag.records.exchange import Exchange
from netdiag.records.lanes import ExchangeLanes
from tests.support.conversation import CLIENT, SERVER, Conversation
from tests.support.http_bytes import head
from tests.support.packets import pcap
from tests.support.public_captures import folder, keylog_of
from tests.support.tools import needs_public_captures, needs_tshark, public_truth

CAPTURES = sorted((Path(__file__).parents[2] / "captures").glob("*.pcapng"))
FEW_PACKETS = 400
EVERY = 3
"""Of the small public captures with requests: each third keeps the test short."""


def selected(path: Path, display_filter: str) -> list[int]:
    """The frames that tshark shows."""
    command = ["tshark", "-n", "-r", str(path), "-Y", display_filter, "-T", "fields", "-e", "frame.number"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return [int(line) for line in done.stdout.split()]


def requests(path: Path, keylog: Path | None = None) -> list[tuple[Exchange, ExchangeLanes]]:
    """First and last request of a capture with what is behind them."""
    analysis = netdiag.analyze(path, keylog=keylog)
    over_tcp = [e for e in analysis.exchanges if e.connection_id is not None]
    with open_capture(path) as capture:
        gathered = gather(capture.windows())
        found = [(e, behind(gathered, analysis, e)) for e in dict.fromkeys([*over_tcp[:1], *over_tcp[-1:]])]
    return [(e, lanes) for e, lanes in found if lanes.packets]


def frames(exchange: Exchange, lanes: ExchangeLanes) -> list[int]:
    lookups = {n for p in exchange.phases if p.name == "dns" for n in (p.first_packet, p.last_packet) if n is not None}
    return sorted({packet.number for packet in lanes.packets} | lookups)


@needs_tshark
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_a_request_is_its_frames(path: Path) -> None:
    for exchange, lanes in requests(path):
        found = selected(path, shown.request_filter(exchange, lanes.connection, lanes))
        assert found == frames(exchange, lanes)


@needs_tshark
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_where_the_list_is_long_the_connection_and_a_range_say_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "_MOST_RUNS", 0)
    for exchange, lanes in requests(path):
        display_filter = shown.request_filter(exchange, lanes.connection, lanes)
        assert "tcp.port" in display_filter
        assert selected(path, display_filter) == frames(exchange, lanes)


@needs_tshark
def test_a_connection_is_told_from_the_next_one_of_the_same_endpoints(tmp_path: Path) -> None:
    talks = []
    for number in range(2):
        talk = Conversation(isns=(1000 + 9000 * number, 5000), at_ns=10**18 + number * 10**10).opens(rtt_ms=5)
        talk.client(head("GET /a HTTP/1.1\nHost: api.example"))
        talk.server(head("HTTP/1.1 200 OK\nContent-Length: 2") + b"ok")
        talk.acks(CLIENT)
        talk.acks(SERVER)
        talks += talk.closes().frames
    path = tmp_path / "twice.pcap"
    path.write_bytes(pcap(talks))
    analysis = netdiag.analyze(io.BytesIO(path.read_bytes()))
    assert len(analysis.connections) == 2
    for connection in analysis.connections:
        assert connection.first_packet is not None
        assert connection.last_packet is not None
        found = selected(path, shown.connection_filter(connection, its_time_only=True))
        assert found == list(range(connection.first_packet, connection.last_packet + 1))
    text = "\n".join(line.plain for line in shown.packets_table(analysis, analysis.exchanges[1], None, width=300))
    assert f"tcp.port == 443 && frame.number >= {analysis.connections[1].first_packet}" in text


@needs_tshark
@needs_public_captures
def test_requests_of_public_captures_are_their_frames() -> None:
    small = [t["path"] for t in public_truth() if (t["http"] or t["http2"]) and t["packets"] <= FEW_PACKETS]
    compared = 0
    for path in small[::EVERY]:
        for exchange, lanes in requests(folder() / path, keylog_of(path))[:1]:
            found = selected(folder() / path, shown.request_filter(exchange, lanes.connection, lanes))
            assert found == frames(exchange, lanes), path
            compared += 1
    assert compared > 20
