"""SSL 3.0 and its ciphers, which no library speaks any more: sealed by the test's own code, read by netdiag, and by tshark as the witness."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from netdiag.protocols.tls.keylog import parse_keylog
from netdiag.protocols.tls.observe import TlsObservation, observe
from netdiag.wire.record_view import TlsRecordView
from tests.support.packets import TcpTalk, pcap
from tests.support.tls_peers import Sender
from tests.support.tls_sealer import Ssl3
from tests.support.tools import needs_tshark

CLIENT_RANDOM, SERVER_RANDOM, MASTER = bytes(range(32)), bytes(range(100, 132)), bytes(range(48))
KEYLOG = f"CLIENT_RANDOM {CLIENT_RANDOM.hex()} {MASTER.hex()}\n".encode()
REQUEST, RESPONSE = b"GET /ssl3 HTTP/1.0\r\n\r\n", b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"
SUITES = {"rc4": 0x0004, "3des": 0x000A, "aes": 0x002F}
NAMES = {
    "rc4": "TLS_RSA_WITH_RC4_128_MD5",
    "3des": "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "aes": "TLS_RSA_WITH_AES_128_CBC_SHA",
}


def _message(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


def _record(kind: int, content: bytes) -> bytes:
    return bytes([kind, 3, 0]) + len(content).to_bytes(2, "big") + content


def flights(cipher: str) -> list[tuple[int, bytes]]:
    """(side, octets) of a whole connection, in order."""
    number = SUITES[cipher].to_bytes(2, "big")
    sealed = Ssl3(MASTER, CLIENT_RANDOM, SERVER_RANDOM, cipher)
    hello = _message(1, b"\x03\x00" + CLIENT_RANDOM + b"\0\0\x02" + number + b"\x01\0")
    answer = _message(2, b"\x03\x00" + SERVER_RANDOM + b"\x20" + bytes(32) + number + b"\0")
    flight = _record(22, answer) + _record(22, _message(11, b"\0\0\0")) + _record(22, _message(14, b""))
    exchange = _record(22, _message(16, bytes(128)))
    change = _record(20, b"\x01")
    return [
        (0, _record(22, hello)),
        (1, flight),
        (0, exchange + change + sealed.seal(0, 22, _message(20, bytes(36)))),
        (1, change + sealed.seal(1, 22, _message(20, bytes(36)))),
        (0, sealed.seal(0, 23, REQUEST)),
        (1, sealed.seal(1, 23, RESPONSE[:20]) + sealed.seal(1, 23, RESPONSE[20:])),
        (0, sealed.seal(0, 21, b"\x01\0")),
    ]


def records(cipher: str) -> tuple[list[TlsRecordView], list[TlsRecordView]]:
    sides = Sender(1), Sender(2)
    for at, (side, octets) in enumerate(flights(cipher)):
        sides[side].sent(octets, at)
    return sides[0].records, sides[1].records


def octets(seen: TlsObservation) -> tuple[bytes, bytes]:
    client, server = (b"".join(c.data for c in chunks or ()) for chunks in (seen.client, seen.server))
    return client, server


@pytest.mark.parametrize("cipher", SUITES)
def test_ssl3_is_decrypted(cipher: str) -> None:
    seen = observe(*records(cipher), parse_keylog(KEYLOG))
    assert octets(seen) == (REQUEST, RESPONSE)
    session = seen.session
    assert (session.version, session.cipher_suite) == ("SSLv3", NAMES[cipher])
    assert (session.resumed, session.round_trips, session.versions_offered) == (False, 2, ("SSLv3",))
    assert [(a.sender, a.name) for a in session.alerts] == [("client", "close_notify")]
    assert seen.anomalies == []


@pytest.mark.parametrize("cipher", SUITES)
def test_a_wrong_master_secret_reads_nothing(cipher: str) -> None:
    wrong = parse_keylog(KEYLOG.replace(MASTER.hex().encode(), bytes(48).hex().encode()))
    seen = observe(*records(cipher), wrong)
    assert octets(seen) == (b"", b"")
    assert "does not authenticate under CLIENT_RANDOM" in seen.anomalies[0].reason


@pytest.mark.parametrize("cipher", SUITES)
@pytest.mark.parametrize("lost", ["octets", "flipped"])
def test_a_chained_cipher_goes_on_after_a_record_it_could_not_read(cipher: str, lost: str) -> None:
    client, server = records(cipher)
    bad = server[-2]
    content = b"" if lost == "octets" else bad.fragment()[:-1] + bytes([bad.fragment()[-1] ^ 1])
    server[-2] = TlsRecordView(
        content_type=bad.content_type,
        version=bad.version,
        length=bad.length,
        stream_offset=bad.stream_offset,
        first_seen_at=bad.first_seen_at,
        last_seen_at=bad.last_seen_at,
        deliverable_at=bad.deliverable_at,
        first_packet=bad.first_packet,
        last_packet=bad.last_packet,
        missing_bytes=bad.length - len(content),
        read=lambda: content,
    )
    seen = observe(client, server, parse_keylog(KEYLOG))
    rest = list(seen.server or ())
    if cipher == "rc4":
        assert [c.data for c in rest] == [RESPONSE[20:]]
        assert (rest[0].missing_before, rest[0].offset) == (20, 20)
    else:
        # CBC chains on the last block of the record that could not be read: lost with its octets, wrong when flipped.
        assert rest == []
    assert octets(seen)[0] == REQUEST


@needs_tshark
@pytest.mark.parametrize("cipher", SUITES)
def test_tshark_reads_the_same(cipher: str, tmp_path: Path) -> None:
    talk = TcpTalk().handshake()
    for side, data in flights(cipher):
        talk.say(side, data)
    (tmp_path / "ssl3.pcap").write_bytes(pcap(talk.frames))
    (tmp_path / "keys").write_bytes(KEYLOG)
    reads = ["tshark", "-r", tmp_path / "ssl3.pcap", "-o", f"tls.keylog_file:{tmp_path / 'keys'}"]
    asks = ["-T", "fields", "-Y", "http", "-e", "http.request.uri", "-e", "http.response.code", "-e", "http.file_data"]
    shown = subprocess.run([*reads, *asks], capture_output=True, text=True, check=True, timeout=60).stdout
    assert shown.split() == ["/ssl3", "200", "ok"]
