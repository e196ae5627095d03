"""What lies inside other things, on public captures: tunnels, upgrades, late starts, gRPC, DNS over HTTPS, QUIC."""

from __future__ import annotations

import json
from typing import Any

import netdiag
from netdiag.export import json as json_export
from netdiag.records.analysis import Analysis
from tests.support.public_captures import folder
from tests.support.tools import needs_public_captures


def analysed(path: str) -> Analysis:
    return netdiag.analyze(folder() / path)


def requests(analysis: Analysis) -> list[tuple[Any, ...]]:
    return [(e.method, e.path, e.status, e.stream_id) for e in analysis.exchanges]


def phases(analysis: Analysis, exchange_id: int) -> list[str]:
    return [str(p.name) for p in analysis.exchanges[exchange_id].phases]


@needs_public_captures
def test_tls_inside_connect() -> None:
    found = analysed("zeek+zeek/http__connect-with-header.pcap")
    (connection,) = found.connections
    assert connection.proxied == "connect"
    assert connection.tls is not None
    assert (connection.tls.sni, connection.tls.version) == ("secure.newegg.com", "TLSv1.2")
    assert requests(found)[0] == ("CONNECT", None, 200, None)
    assert phases(found, 1) == ["tcp", "proxy", "tls", "send", "wait", "transfer"]


@needs_public_captures
def test_clear_text_inside_connect() -> None:
    found = analysed("OISF+suricata-verify/http-connect__http-connect-simple__input.pcap")
    assert requests(found) == [("CONNECT", None, 200, None), ("GET", "/", 200, None)]
    assert "proxy" in phases(found, 1)


@needs_public_captures
def test_http_inside_socks() -> None:
    found = analysed("arkime+arkime/socks5-http-302.pcap")
    assert found.connections[0].proxied == "socks5"
    assert requests(found) == [("GET", "/", 302, None)]
    assert phases(found, 0) == ["tcp", "proxy", "send", "wait", "transfer"]


@needs_public_captures
def test_http2_after_an_upgrade() -> None:
    found = analysed("secdev+scapy/http2_h2c.pcap")
    expected = [("GET", "/robots.txt", 101, None), ("GET", "/robots.txt", 200, 1), ("GET", "/humans.txt", 404, 3)]
    assert requests(found)[:3] == expected
    assert found.connections[0].http_version == "h2"


@needs_public_captures
def test_grpc_status_comes_from_trailers() -> None:
    found = analysed("rmedvedev+grpcdump/grpc.pcap")
    assert [(e.status, e.grpc_status, e.protocol) for e in found.exchanges] == [(200, 0, "h2")] * 5


@needs_public_captures
def test_http2_that_began_before_the_capture() -> None:
    found = analysed("deepflowio+deepflow/http__grpc-unary.pcap")
    (exchange,) = found.exchanges
    assert (exchange.method, exchange.status, exchange.stream_id) == ("POST", 200, 1)
    assert phases(found, 0) == ["send", "wait", "transfer"]


@needs_public_captures
def test_a_websocket() -> None:
    found = analysed("zeek+zeek/http__websocket.pcap")
    assert found.connections[0].application == "websocket"
    assert requests(found)[0][2] == 101


@needs_public_captures
def test_dns_over_https() -> None:
    found = analysed("OISF+suricata-verify/dns-over-http2__dns_over_https.pcap")
    assert found.connections[0].application == "dns-over-https"


@needs_public_captures
def test_quic_connections_are_in_the_document() -> None:
    document = json.loads(json_export.dumps(analysed("ntop+nDPI/quic-v2.pcapng")))
    (connection,) = document["connections"]
    assert (connection["transport"], connection["application"]) == ("quic", "quic v2")
    assert (connection["tls"]["sni"], connection["tls"]["version"]) == ("test", "TLSv1.3")
