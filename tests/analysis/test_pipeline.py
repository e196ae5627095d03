"""Whole captures, made packet by packet: what each kind of ending, lookup and transport becomes."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pytest

import netdiag
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.labels import request_label
from netdiag.stats.distribution import statistics
from netdiag.units import NS_PER_MS
from tests.support import dns_bytes
from tests.support.http_bytes import head
from tests.support.packets import (
    ACK,
    EPOCH_NS,
    RST,
    SYN,
    TcpTalk,
    Timed,
    block,
    checksum,
    ethernet,
    interface_block,
    ip,
    pcap,
    section_header,
    tcp_conversation,
    udp_frame,
)

GET = head("GET /a HTTP/1.1\nHost: api.example")
OK = head("HTTP/1.1 200 OK\nContent-Length: 2") + b"ok"


def analysed(*parts: Iterable[Timed]) -> Analysis:
    frames = sorted(frame for part in parts for frame in part)
    return netdiag.analyze(io.BytesIO(pcap(frames)))


def phases_ms(exchange: Exchange) -> dict[str, float]:
    return {str(p.name): p.duration_ns / NS_PER_MS for p in exchange.phases}


def test_one_request() -> None:
    (exchange,) = analysed(tcp_conversation([(0, GET), (1, OK)])).exchanges
    assert (exchange.method, exchange.authority, exchange.path, exchange.status) == ("GET", "api.example", "/a", 200)
    assert phases_ms(exchange) == {"tcp": 1, "send": 0, "wait": 2, "transfer": 0}
    assert exchange.unattributed_ns == 2 * NS_PER_MS


def test_a_proxy_whose_consent_was_not_captured_is_asked_all_the_same() -> None:
    """The server's first captured octets are a TLS record: what the client said first tells that there is a tunnel."""
    asked = head("CONNECT api.example:443 HTTP/1.1\nHost: api.example:443")
    hello, answer = b"\x16\x03\x01\x00\x28\x01\x00\x00\x24" + bytes(36), b"\x16\x03\x03\x00\x04\x0e\x00\x00\x00"
    frames = tcp_conversation([(0, asked), (1, head("HTTP/1.1 200 OK")), (0, hello), (1, answer)], closed=False)
    (lost,) = [frame for frame in frames if b"200 OK" in frame[1]]
    found = analysed(frame for frame in frames if frame != lost)
    assert found.exchanges[0].method == "CONNECT"
    assert found.connections[0].proxied == "connect"


def test_a_tunnel_s_set_up_is_no_request_of_its_arm() -> None:
    asked, inside = (
        head("CONNECT api.example:443 HTTP/1.1\nHost: api.example:443"),
        head("GET /inside HTTP/1.1\nHost: a"),
    )
    said = [(0, asked), (1, head("HTTP/1.1 200 Connection established")), (0, inside), (1, OK)]
    found = analysed(tcp_conversation(said))
    assert [e.method for e in found.exchanges] == ["CONNECT", "GET"]
    for told in (found.statistics, statistics(list(found.exchanges))):  # from columns, and from records
        (arm,) = told
        assert (arm.arm, arm.n) == ("http/1.1", 1)
        assert [(row.exchange_id, row.reason) for row in arm.excluded] == [(0, "sets up a tunnel (CONNECT)")]
    assert request_label(found.exchanges[0]) == "CONNECT api.example:443"


def test_an_empty_capture() -> None:
    analysis = analysed()
    assert (len(analysis.connections), len(analysis.exchanges), len(analysis.resolutions)) == (0, 0, 0)
    assert analysis.source.packets == 0
    assert (analysis.source.first_at, analysis.source.last_at) == (None, None)


def test_packets_without_a_time_are_counted_and_no_instant_is_invented() -> None:
    frames = [frame for _, frame in tcp_conversation([(0, GET), (1, OK)])]
    simple = [block(3, len(f).to_bytes(4, "little") + f + bytes(-len(f) % 4)) for f in frames]
    capture = section_header() + interface_block() + b"".join(simple)
    analysis = netdiag.analyze(io.BytesIO(capture))
    assert analysis.source.packets == len(frames)
    assert analysis.source.not_decoded == {"without a time stamp": len(frames)}
    assert (len(analysis.connections), len(analysis.exchanges)) == (0, 0)


def later(at_ms: float) -> list[Timed]:
    """Something that happens long after, so that the capture goes on."""
    return [(EPOCH_NS + int(at_ms * NS_PER_MS), udp_frame(b"\0" * 20, destination=("10.0.0.9", 9)))]


def test_a_refused_connection_is_an_exchange_that_stopped_in_tcp() -> None:
    talk = TcpTalk()
    talk.packet(0, flags=SYN)
    talk.packet(1, flags=RST | ACK, ack=talk.client_isn + 1)
    (exchange,) = analysed(talk.frames).exchanges
    assert (exchange.outcome, phases_ms(exchange)) == (Outcome.REFUSED, {"tcp": 1})


def silence(times_s: Iterable[float]) -> list[Timed]:
    talk = TcpTalk(step_ns=0)
    for at_s in times_s:
        talk.at_ns = EPOCH_NS + int(at_s * 1e9)
        talk.packet(0, flags=SYN)
    return talk.frames


def test_syns_without_an_answer_time_out() -> None:
    (exchange,) = analysed(silence((0, 1, 3, 7)), later(20_000)).exchanges
    assert (exchange.outcome, exchange.outcome_detail) == (Outcome.TIMEOUT_CONNECT, "4 SYN without an answer")
    assert phases_ms(exchange) == {"tcp": 7_000}


def icmp_about(syn: bytes, kind: int, code: int, at_ms: float) -> list[Timed]:
    """An error of a router about the IP packet in a frame."""
    quoted = syn[14 : 14 + 28]
    body = bytes([kind, code, 0, 0, 0, 0, 0, 0]) + quoted
    body = body[:2] + checksum(body).to_bytes(2, "big") + body[4:]
    frame = ethernet(ip(body, source="10.0.0.254", destination="10.0.0.1", protocol=1))
    return [(EPOCH_NS + int(at_ms * NS_PER_MS), frame)]


def test_the_network_says_that_the_host_cannot_be_reached() -> None:
    syns = silence((0,))
    analysis = analysed(syns, icmp_about(syns[0][1], 3, 1, 40), later(5_000))
    (exchange,) = analysis.exchanges
    assert (exchange.outcome, exchange.outcome_detail) == (Outcome.UNREACHABLE, "host unreachable")
    assert phases_ms(exchange) == {"tcp": 40}
    assert exchange.phases[0].last_packet == 2


def test_fragmentation_needed_ends_nothing() -> None:
    syns = silence((0,))
    (exchange,) = analysed(syns, icmp_about(syns[0][1], 3, 4, 40), later(5_000)).exchanges
    assert exchange.outcome is Outcome.TIMEOUT_CONNECT


def test_a_connection_that_only_an_error_tells_of() -> None:
    syns = silence((0,))
    error = icmp_about(syns[0][1], 3, 1, 40)
    (connection,) = analysed(error, icmp_about(syns[0][1], 3, 1, 1_040)).connections
    (seen,) = analysed(syns).connections
    assert (connection.client, connection.server) == (seen.client, seen.server)
    assert (connection.close_reason, connection.first_packet, connection.last_packet) == ("unreachable", 1, 2)
    assert connection.sides.client.packets == connection.sides.server.packets == 0
    assert len(analysed(syns, error).connections) == 1
    (too_big,) = analysed(icmp_about(syns[0][1], 3, 4, 40)).connections
    assert too_big.close_reason is None


def lookup(name: str, address: str, at_ms: float, took_ms: float) -> list[Timed]:
    at = EPOCH_NS + int(at_ms * NS_PER_MS)
    query = udp_frame(dns_bytes.message(name))
    reply = dns_bytes.answer(name, dns_bytes.a(dns_bytes.pointer(12), address))
    answer = udp_frame(reply, source=("10.0.0.53", 53), destination=("10.0.0.1", 40000))
    return [(at, query), (at + int(took_ms * NS_PER_MS), answer)]


def test_the_lookup_belongs_to_the_first_request_and_names_its_connection() -> None:
    talk = TcpTalk(at_ns=EPOCH_NS + 30 * NS_PER_MS)
    analysis = analysed(
        lookup("api.example", "10.0.0.2", 0, 25), tcp_conversation([(0, GET), (1, OK), (0, GET), (1, OK)], talk=talk)
    )
    first, second = analysis.exchanges
    assert phases_ms(first)["dns"] == 25
    assert "dns" not in phases_ms(second)
    assert first.started_at == EPOCH_NS
    assert [r.connection_id for r in analysis.resolutions] == [0]


def test_a_lookup_of_another_name_is_not_this_connections() -> None:
    talk = TcpTalk(at_ns=EPOCH_NS + 30 * NS_PER_MS)
    analysis = analysed(lookup("other.example", "10.0.0.2", 0, 25), tcp_conversation([(0, GET), (1, OK)], talk=talk))
    assert "dns" not in phases_ms(analysis.exchanges[0])


INITIAL = bytes.fromhex(
    # RFC 9001 appendix A.2: a client's Initial with a ClientHello for example.com.
    "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11d242b123dc9bd8bab936b47d92ec356c0bab7df5976d27cd449f63300099f399"
    "1c260ec4c60d17b31f8429157bb35a1282a643a8d2262cad67500cadb8e7378c8eb7539ec4d4905fed1bee1fc8aafba17c750e2c7ace01e6005f80fcb7df6212"
    "30c83711b39343fa028cea7f7fb5ff89eac2308249a02252155e2347b63d58c5457afd84d05dfffdb20392844ae812154682e9cf012f9021a6f0be17ddd0c208"
    "4dce25ff9b06cde535d0f920a2db1bf362c23e596d11a4f5a6cf3948838a3aec4e15daf8500a6ef69ec4e3feb6b1d98e610ac8b7ec3faf6ad760b7bad1db4ba3"
    "485e8a94dc250ae3fdb41ed15fb6a8e5eba0fc3dd60bc8e30c5c4287e53805db059ae0648db2f64264ed5e39be2e20d82df566da8dd5998ccabdae053060ae6c"
    "7b4378e846d29f37ed7b4ea9ec5d82e7961b7f25a9323851f681d582363aa5f89937f5a67258bf63ad6f1a0b1d96dbd4faddfcefc5266ba6611722395c906556"
    "be52afe3f565636ad1b17d508b73d8743eeb524be22b3dcbc2c7468d54119c7468449a13d8e3b95811a198f3491de3e7fe942b330407abf82a4ed7c1b311663a"
    "c69890f4157015853d91e923037c227a33cdd5ec281ca3f79c44546b9d90ca00f064c99e3dd97911d39fe9c5d0b23a229a234cb36186c4819e8b9c5927726632"
    "291d6a418211cc2962e20fe47feb3edf330f2c603a9d48c0fcb5699dbfe5896425c5bac4aee82e57a85aaf4e2513e4f05796b07ba2ee47d80506f8d2c25e50fd"
    "14de71e6c418559302f939b0e1abd576f279c4b2e0feb85c1f28ff18f58891ffef132eef2fa09346aee33c28eb130ff28f5b766953334113211996d20011a198"
    "e3fc433f9f2541010ae17c1bf202580f6047472fb36857fe843b19f5984009ddc324044e847a4f4a0ab34f719595de37252d6235365e9b84392b061085349d73"
    "203a4a13e96f5432ec0fd4a1ee65accdd5e3904df54c1da510b0ff20dcc0c77fcb2c0e0eb605cb0504db87632cf3d8b4dae6e705769d1de354270123cb11450e"
    "fc60ac47683d7b8d0f811365565fd98c4c8eb936bcab8d069fc33bd801b03adea2e1fbc5aa463d08ca19896d2bf59a071b851e6c239052172f296bfb5e724047"
    "90a2181014f3b94a4e97d117b438130368cc39dbb2d198065ae3986547926cd2162f40a29f0c3c8745c0f50fba3852e566d44575c29d39a03f0cda721984b6f4"
    "40591f355e12d439ff150aab7613499dbd49adabc8676eef023b15b65bfc5ca06948109f23f350db82123535eb8a7433bdabcb909271a6ecbcb58b936a88cd4e"
    "8f2e6ff5800175f113253d8fa9ca8885c2f552e657dc603f252e1a8e308f76f0be79e2fb8f5d5fbbe2e30ecadd220723c8c0aea8078cdfcb3868263ff8f09400"
    "54da48781893a7e49ad5aff4af300cd804a6b6279ab3ff3afb64491c85194aab760d58a606654f9f4400e8b38591356fbf6425aca26dc85244259ff2b19c41b9"
    "f96f3ca9ec1dde434da7d2d392b905ddf3d1f9af93d1af5950bd493f5aa731b4056df31bd267b6b90a079831aaf579be0a39013137aac6d404f518cfd4684064"
    "7e78bfe706ca4cf5e9c5453e9f7cfd2b8b4c8d169a44e55c88d4a9a7f9474241e221af44860018ab0856972e194cd934"
)


@pytest.mark.parametrize(("until_ms", "outcome"), [(5_000, Outcome.TIMEOUT_CONNECT), (200, Outcome.INCOMPLETE)])
def test_quic_that_nothing_answers_is_an_attempt_that_failed(until_ms: float, outcome: Outcome) -> None:
    frames = [(EPOCH_NS, udp_frame(INITIAL, destination=("10.0.0.2", 443)))]
    talk = TcpTalk(at_ns=EPOCH_NS + 100 * NS_PER_MS)
    analysis = analysed(frames, tcp_conversation([(0, GET), (1, OK)], talk=talk), later(until_ms))
    assert [(c.id, c.transport) for c in analysis.connections] == [(0, "tcp"), (1, "quic")]
    failed, went_on = analysis.exchanges
    assert (failed.connection_id, failed.outcome, failed.server_name) == (1, outcome, "example.com")
    assert went_on.status == 200
