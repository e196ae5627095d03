"""TLS_SM4_GCM_SM3 (RFC 8998): against the RFC's own vector, and tshark over one whole conversation. No peer at hand speaks it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import netdiag
from netdiag.protocols.tls.protection import protection13
from netdiag.protocols.tls.suites import suite_of
from tests.support.conversation import Conversation
from tests.support.packets import pcap
from tests.support.tls_sealer import Sealer13
from tests.support.tools import needs_tshark

SUITE = 0x00C6
RANDOMS = b"c" * 32, b"s" * 32
LABELS = (
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
)
SECRETS = {label: bytes([place]) * 32 for place, label in enumerate(LABELS)}
KEY_LOG = "".join(f"{label} {RANDOMS[0].hex()} {secret.hex()}\n" for label, secret in SECRETS.items())
FINISHED = b"\x14\0\0\x20" + bytes(32)


def sized(content: bytes, size: int) -> bytes:
    return len(content).to_bytes(size, "big") + content


def extension(kind: int, content: bytes) -> bytes:
    return kind.to_bytes(2, "big") + sized(content, 2)


def hello(kind: int, random: bytes, suites: bytes, extensions: bytes) -> bytes:
    compression = b"\x01\0" if kind == 1 else b"\0"
    body = b"\x03\x03" + random + b"\0" + suites + compression + sized(extensions, 2)
    return b"\x16\x03\x03" + sized(bytes([kind]) + sized(body, 3), 2)


def client_hello() -> bytes:
    extensions = extension(43, b"\x02\x03\x04") + extension(0, sized(b"\0" + sized(b"sm4.example", 2), 2))
    return hello(1, RANDOMS[0], sized(SUITE.to_bytes(2, "big"), 2), extensions)


def server_hello() -> bytes:
    return hello(2, RANDOMS[1], SUITE.to_bytes(2, "big"), extension(43, b"\x03\x04"))


def talked(tmp_path: Path) -> tuple[Path, Path]:
    """A capture of a request and its answer, and the key log."""
    client, server, asking, answering = (Sealer13(SECRETS[label], "TLS_SM4_GCM_SM3") for label in LABELS)
    talk = Conversation().opens()
    talk.client(client_hello())
    talk.server(server_hello() + server.seal(b"\x08\0\0\x02\0\0" + FINISHED, 22))
    talk.client(client.seal(FINISHED, 22) + asking.seal(b"GET /sm4 HTTP/1.1\r\nHost: sm4.example\r\n\r\n"))
    talk.server(answering.seal(b"HTTP/1.1 204 No Content\r\n\r\n"))
    talk.closes()
    capture, keys = tmp_path / "sm4.pcap", tmp_path / "keys.log"
    capture.write_bytes(pcap(talk.frames))
    keys.write_text(KEY_LOG)
    return capture, keys


def test_the_vector_of_the_rfc() -> None:
    """RFC 8998 appendix A.1: the cipher under TLS 1.3's framing is AES-GCM's, so the cipher is what is to be tested."""
    from netdiag.protocols.tls.protection import _aead

    bulk = suite_of(SUITE).bulk
    assert bulk is not None
    pairs = "aabbccddeeffeeaa"
    plain = bytes.fromhex("".join(pairs[i : i + 2] * 8 for i in range(0, len(pairs), 2)))
    sealed = bytes.fromhex(
        "17f399f08c67d5ee19d0dc9969c4bb7d5fd46fd3756489069157b282bb200735"
        "d82710ca5c22f0ccfa7cbf93d496ac15a56834cbcf98c397b4024a2691233b8d"
        "83de3541e4c2b58177e065a9bf7b62ec"
    )
    nonce, aad = bytes.fromhex("00001234567800000000abcd"), bytes.fromhex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
    assert _aead(bulk, bytes.fromhex("0123456789abcdeffedcba9876543210"))(nonce, sealed, aad) == plain


def test_what_was_tampered_with_is_none() -> None:
    protection = protection13(SECRETS[LABELS[2]], suite_of(SUITE), 0x0304)
    assert protection is not None
    record = Sealer13(SECRETS[LABELS[2]], "TLS_SM4_GCM_SM3").seal(b"hello")[5:]
    assert protection.open(0, 23, 0x0303, record) == (23, b"hello")
    assert protection.open(0, 23, 0x0303, bytes([record[0] ^ 1]) + record[1:]) is None
    assert protection.open(0, 23, 0x0303, record[:7]) is None


def test_a_conversation_is_read(tmp_path: Path) -> None:
    capture, keys = talked(tmp_path)
    analysis = netdiag.analyze(capture, keylog=keys)
    (exchange,), (connection,) = analysis.exchanges, analysis.connections
    assert (exchange.method, exchange.path, exchange.status) == ("GET", "/sm4", 204)
    assert connection.tls is not None
    assert (connection.tls.cipher_suite, connection.tls.sni) == ("TLS_SM4_GCM_SM3", "sm4.example")
    assert analysis.anomalies == ()


@needs_tshark
def test_tshark_reads_the_same(tmp_path: Path) -> None:
    capture, keys = talked(tmp_path)
    command = ["tshark", "-n", "-r", str(capture), "-o", f"tls.keylog_file:{keys}", "-Y", "http", "-T", "fields"]
    command += ["-e", "http.request.uri", "-e", "http.response.code"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert shown == ["/sm4", "204"]
