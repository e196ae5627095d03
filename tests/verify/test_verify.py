"""The second witness: agreement on a good capture, honest differences on a changed one, clear words without tshark."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from netdiag import api
from netdiag.errors import CaptureFileError, ToolMissing
from netdiag.verify.compare import verify
from netdiag.verify.facts import CaptureFacts, ConnectionFacts, facts_of
from netdiag.verify.tshark import witness
from tests.support.dns_bytes import a, answer, message, pointer
from tests.support.packets import TcpTalk, pcap, tcp_conversation, timed, udp_frame
from tests.support.public_captures import folder, keylog_of
from tests.support.tools import needs_public_captures, needs_tshark, public_truth

CAPTURES = Path(__file__).resolve().parents[2] / "captures"

PAIR = ("192.0.2.1:443", "192.0.2.2:40000")


def capture(**changed: object) -> CaptureFacts:
    values: dict[str, object] = {
        "syn_packet": 1,
        "syn_ack_packet": 2,
        "ack_packet": 3,
        "client_hello_packet": 4,
        "sni": "a.test",
    }
    connection = ConnectionFacts(pair=PAIR, **(values | {"requests": Counter({("GET", "/"): 1})} | changed))
    return CaptureFacts(packets=20, connections=[connection], names=Counter({("a.test", 7): 1}))


def test_equal_witnesses_agree_on_everything():
    result = verify(capture(), capture(), witness="w")
    assert not result.differences
    assert result.rates()["sni"] == (1, 1)


def test_a_different_name_is_a_difference_without_excuse():
    result = verify(capture(), capture(sni="b.test"), witness="w")
    (difference,) = result.unexplained
    assert (difference.field, difference.netdiag, difference.witness) == ("sni", "a.test", "b.test")


def test_a_request_that_the_witness_lists_twice_is_of_a_known_kind():
    result = verify(capture(), capture(requests=Counter({("GET", "/"): 2})), witness="w")
    assert not result.unexplained
    assert "again" in (result.differences[0].reason or "")


def test_requests_inside_tunnels_of_http2_are_of_a_known_kind():
    result = verify(capture(requests=Counter({("GET", "/"): 2}), tunnels=True), capture(), witness="w")
    assert not result.unexplained
    assert "tunnel" in (result.differences[0].reason or "")


def test_a_connection_more_is_reported():
    more = capture()
    more.connections.append(ConnectionFacts(pair=PAIR))
    fields = {d.field for d in verify(capture(), more, witness="w").unexplained}
    assert fields == {"connections", "incarnations"}


def test_a_connection_made_again_with_the_same_number_is_of_a_known_kind():
    twice = capture(closed=True)
    twice.connections.append(ConnectionFacts(pair=PAIR, syn_packet=12))
    result = verify(twice, capture(), witness="w")
    assert {d.field for d in result.differences} == {"connections", "incarnations"}
    assert not result.unexplained
    assert verify(capture(), twice, witness="w").unexplained


def test_another_copy_of_a_hello_captured_twice_is_of_a_known_kind():
    mine, theirs = capture(client_hello_at=5_000), capture(client_hello_packet=5, client_hello_at=5_000)
    assert not verify(mine, theirs, witness="w").unexplained
    theirs.connections[0].client_hello_at = 9_000_000
    assert verify(mine, theirs, witness="w").unexplained


def test_tls_in_packets_of_another_protocol_is_of_a_known_kind():
    mine, theirs = capture(client_hello_packet=None, sni=None), capture()
    assert verify(mine, theirs, witness="w").unexplained
    theirs.connections[0].inside = "openvpn"
    result = verify(mine, theirs, witness="w")
    assert not result.unexplained
    assert "openvpn" in (result.differences[0].reason or "")


def test_an_answer_that_the_witness_calls_repeated_is_of_a_known_kind():
    theirs = capture()
    theirs.names["a.test", 9] += 1
    assert verify(capture(), theirs, witness="w").unexplained
    theirs.repeated.add(9)
    assert not verify(capture(), theirs, witness="w").unexplained


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_a_question_asked_and_answered_twice_is_no_difference(tmp_path):
    """The resolver's second try and the server's second answer: one resolution."""
    ask, reply = message("twice.test"), answer("twice.test", a(pointer(12), "192.0.2.7"))
    asks = [udp_frame(ask) for _ in range(2)]
    replies = [udp_frame(reply, source=("10.0.0.53", 53), destination=("10.0.0.1", 40000)) for _ in range(2)]
    file = tmp_path / "twice.pcap"
    file.write_bytes(pcap(timed([*asks, *replies], step_ns=1_200_000_000)))
    result = verify(facts_of(api.analyze(str(file))), witness(str(file)), witness="tshark")
    assert not result.unexplained
    assert result.agreed["dns"] == 1


def test_a_target_with_blanks_is_of_a_known_kind():
    mine, theirs = Counter({("GET", "/?q=a or b"): 1}), Counter({("GET", "/?q=a"): 1})
    assert not verify(capture(requests=mine), capture(requests=theirs), witness="w").unexplained


@pytest.mark.parametrize("name", [p.name for p in sorted(CAPTURES.glob("*.pcapng"))])
@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_agrees_on_our_own_captures(name):
    """Every difference on the repository's captures is of a known kind."""
    path = str(CAPTURES / name)
    result = verify(facts_of(api.analyze(path)), witness(path), witness="tshark")
    assert not result.unexplained


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_what_tshark_cannot_read_is_said(tmp_path):
    junk = tmp_path / "junk.pcap"
    junk.write_bytes(b"this is no capture at all, whatever its name says")
    with pytest.raises(CaptureFileError):
        witness(str(junk))


def test_without_tshark_the_way_out_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match="install"):
        witness("x.pcap")


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_the_command_prints_rates_and_json():
    from click.testing import CliRunner

    from netdiag.cli.verify import verify as command

    file = str(next(iter(sorted(CAPTURES.glob("*.pcapng")))))
    text = CliRunner().invoke(command, [file])
    assert text.exit_code == 0
    assert "0 differences without a known reason" in text.output
    document = json.loads(CliRunner().invoke(command, [file, "--json"]).output)
    assert document["fields"]["packets"] == {"agree": 1, "compared": 1}


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_the_witness_gives_away_nothing_that_we_keep_to_ourselves(tmp_path):
    """tshark prints the target with its secrets; it goes through our redaction, and then both agree."""
    from click.testing import CliRunner

    from netdiag.cli.verify import verify as command

    ask = b"GET /v1/models?api_key=CANARY1&x=1 HTTP/1.1\r\nHost: a.test\r\nAuthorization: Bearer CANARY2\r\n\r\n"
    answer = b"HTTP/1.1 204 No Content\r\n\r\n"
    talk = tcp_conversation([(0, ask), (1, answer)], talk=TcpTalk(server=("10.0.0.2", 80)))
    file = tmp_path / "a.pcap"
    file.write_bytes(pcap(talk))
    document = CliRunner().invoke(command, [str(file), "--json"]).output
    assert "CANARY" not in document
    assert "CANARY" not in CliRunner().invoke(command, [str(file), "--all"]).output
    assert json.loads(document)["fields"]["requests"] == {"agree": 1, "compared": 1}


def public() -> list[object]:
    """Of the captures of moderate size each twelfth, all of them in a long run."""
    rows = [t["path"] for t in public_truth() if t["packets"] <= 20_000]
    return [
        pytest.param(path, id=path, marks=() if number % 12 == 0 else pytest.mark.slow)
        for number, path in enumerate(rows)
    ]


@needs_tshark
@needs_public_captures
@pytest.mark.parametrize("path", public())
def test_every_difference_on_public_captures_is_of_a_known_kind(path):
    file, keylog = folder() / path, keylog_of(path)
    result = verify(
        facts_of(api.analyze(file, keylog=keylog)),
        witness(str(file), keylog=str(keylog) if keylog else None),
        witness="tshark",
    )
    assert result.unexplained == []
    assert result.agreed.get("packets") or path == "lucian+pcap_file_ex/corrupted.pcap"


def test_known_kinds_are_named_only_where_they_fit():
    no_answer = verify(capture(syn_ack_packet=None), capture(), witness="w")
    assert "SYN-ACK" in (no_answer.differences[0].reason or "")
    assert not verify(capture(), capture(syn_ack_packet=9), witness="w").differences[0].reason
    overflow = verify(capture(syn_at=2**33 + 5), capture(syn_at=5), witness="w")
    assert "32 bits" in (overflow.differences[0].reason or "")
    assert verify(capture(syn_at=7_000_000), capture(syn_at=5), witness="w").unexplained
    broken = capture()
    broken.malformed = {9}
    broken.names = Counter({("a.test", 7): 1, ("b.test", 9): 1, ("c.test", 10): 1})
    reasons = {d.where.split()[-1]: d.reason for d in verify(capture(), broken, witness="w").differences}
    assert reasons == {"b.test": "tshark itself calls the packet malformed", "c.test": None}
