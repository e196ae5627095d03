"""What can be said of halves of connections, of captures that begin in the middle, and of octets that mean no good."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from OpenSSL import SSL

from netdiag.protocols.tls.keylog import KeyLog, parse_keylog
from netdiag.protocols.tls.observe import TlsObservation, observe
from netdiag.wire.record_view import TlsRecordView
from tests.support.tls_peers import BEGIN, Conversation, Pair, Sender, Settings, converse, record_view

TLS13, TLS12 = converse(Settings(suites="TLS_AES_128_GCM_SHA256")), converse(Settings(version=SSL.TLS1_2_VERSION))
BOTH = pytest.mark.parametrize("talk", [TLS13, TLS12], ids=["TLS 1.3", "TLS 1.2"])


def octets(seen: TlsObservation) -> tuple[bytes, bytes]:
    client, server = (b"".join(c.data for c in chunks or ()) for chunks in (seen.client, seen.server))
    return client, server


# -- one direction only --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suite", ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"])
def test_one_captured_direction_of_tls13_finds_its_keys_by_trial(suite: str) -> None:
    talk = converse(Settings(suites=suite))
    others = b"".join(converse().keylog for _ in range(3))
    keylog = parse_keylog(others + talk.keylog)
    assert octets(observe(talk.client, [], keylog)) == (talk.said.client, b"")
    seen = observe([], talk.server, keylog)
    assert octets(seen) == (b"", talk.said.server)
    assert seen.session.cipher_suite == suite


def test_one_captured_direction_of_tls13_without_keys() -> None:
    client = observe(TLS13.client, [], None).session
    assert (client.version, client.cipher_suite, client.sni) == (None, None, "lab.example")
    assert (client.finished_at, client.resumed, client.missing_secret) == (None, None, "CLIENT_TRAFFIC_SECRET_0")
    server = observe([], TLS13.server, KeyLog()).session
    assert (server.version, server.sni, server.client_random) == ("TLSv1.3", None, None)
    assert (server.finished_at, server.missing_secret) == (None, "SERVER_TRAFFIC_SECRET_0")


def test_one_captured_direction_of_tls12() -> None:
    seen = observe(TLS12.client, [], parse_keylog(TLS12.keylog))
    assert octets(seen) == (b"", b"")
    assert (seen.session.version, seen.session.sni, seen.session.finished_at) == (None, "lab.example", None)
    assert seen.session.versions_offered == ("TLSv1.2",)
    seen = observe([], TLS12.server, parse_keylog(TLS12.keylog))
    assert (seen.session.version, seen.session.resumed) == ("TLSv1.2", False)
    assert seen.session.finished_at is None


@BOTH
def test_a_capture_that_begins_in_the_middle(talk: Conversation) -> None:
    seen = observe(talk.client[-2:], talk.server[-3:], parse_keylog(talk.keylog))
    session = seen.session
    assert (seen.client, seen.server) == (None, None)
    assert (session.version, session.client_hello_at, session.finished_at, session.resumed) == (None,) * 4
    assert seen.handshake.first_application[1] == 0
    assert seen.anomalies == []


def test_nothing_at_all() -> None:
    seen = observe([], [], None)
    assert seen.session.version is None
    assert (seen.client, seen.server, seen.anomalies) == (None, None, [])


@BOTH
def test_a_hello_alone(talk: Conversation) -> None:
    session = observe(talk.client[:1], [], None).session
    assert (session.client_hello_at, session.sni, session.version) == (BEGIN, "lab.example", None)
    assert session.missing_secret is None


def test_an_encrypted_client_hello_hides_its_random_but_not_its_keys() -> None:
    """With ECH the secrets belong to the inner hello's random, which is not on the wire (RFC 9849): the log is tried."""
    content = TLS13.client[0].fragment()
    inside = 4 + 2 + 32 + 1 + content[38]
    inside += 2 + int.from_bytes(content[inside : inside + 2], "big")
    inside += 1 + content[inside]
    extensions = content[inside + 2 :] + b"\xfe\x0d\0\x08" + bytes(8)
    body = content[4:inside] + len(extensions).to_bytes(2, "big") + extensions
    content = b"\x01" + len(body).to_bytes(3, "big") + body
    hello = record_view(b"\x16\x03\x01" + len(content).to_bytes(2, "big") + content, 0, BEGIN, 1)
    outer = TLS13.client[0].fragment()[6:38].hex()
    keylog = parse_keylog(TLS13.keylog.replace(outer.encode(), b"ab" * 32))
    assert octets(observe(TLS13.client, TLS13.server, keylog)) == (b"", b"")
    seen = observe([hello, *TLS13.client[1:]], TLS13.server, keylog)
    assert octets(seen) == (TLS13.said.client, TLS13.said.server)
    assert seen.session.ech == "offered"


def test_trials_are_bounded_over_all_connections() -> None:
    foreign = b"".join(
        b"SERVER_HANDSHAKE_TRAFFIC_SECRET %s %s\n" % (b"%064x" % n, b"%064x" % (n * n)) for n in range(1_000)
    )
    keylog = parse_keylog(foreign)
    keylog.trials_left = 2_500
    for _ in range(10):
        assert octets(observe([], TLS13.server, keylog)) == (b"", b"")
    assert keylog.trials_left == 0


# -- oddities ------------------------------------------------------------------------------------------------------------------------------


def test_null_ciphers_are_read_without_keys() -> None:
    talk = converse(Settings(version=SSL.TLS1_2_VERSION, ciphers="NULL-SHA256"))
    assert octets(observe(talk.client, talk.server, None)) == (talk.said.client, talk.said.server)


def test_an_ssl2_compatible_hello() -> None:
    specs = b"\0\x00\x2f\x07\x00\xc0"
    message = b"\x01\x03\x01" + struct.pack(">HHH", len(specs), 0, 32) + specs + bytes(range(32))
    hello = TlsRecordView(
        content_type=128,
        version=2,
        length=len(message),
        stream_offset=0,
        first_seen_at=BEGIN,
        last_seen_at=BEGIN,
        deliverable_at=BEGIN,
        first_packet=4,
        last_packet=4,
        missing_bytes=0,
        read=lambda: message,
    )
    session = observe([hello], [], None).session
    assert (session.client_random, session.versions_offered) == (bytes(range(32)).hex(), ("TLSv1.0",))
    assert (session.client_hello_at, session.client_hello_packet, session.sni) == (BEGIN, 4, None)


def test_a_handshake_in_tiny_records() -> None:
    """Both hellos and the certificate cut into records of three octets each."""

    def crumbled(records: Sequence[TlsRecordView]) -> list[TlsRecordView]:
        sender = Sender(1)
        clear = True
        for record in records:
            clear = clear and record.content_type == 22
            content = record.fragment()
            pieces = [content[i : i + 3] for i in range(0, len(content), 3)] if clear else [content]
            for piece in pieces:
                head = bytes([record.content_type]) + record.version.to_bytes(2, "big")
                sender.sent(head + len(piece).to_bytes(2, "big") + piece, record.first_seen_at)
        return sender.records

    client, server = crumbled(TLS12.client), crumbled(TLS12.server)
    assert len(server) > 200
    seen = observe(client, server, parse_keylog(TLS12.keylog))
    assert octets(seen) == (TLS12.said.client, TLS12.said.server)
    whole = observe(TLS12.client, TLS12.server, None).session
    assert (seen.session.certificate_bytes, seen.session.sni) == (whole.certificate_bytes, whole.sni)
    assert seen.session.client_hello_packet != client[0].first_packet


def test_a_lost_hello_record_does_not_stop_the_rest() -> None:
    lacking = TLS13.client[0]
    short = record_view(b"\x16\x03\x01\0\x10" + bytes(16), 0, BEGIN, 1)
    short.missing_bytes = 100
    short.length = lacking.length
    seen = observe([short, *TLS13.client[1:]], TLS13.server, None)
    assert "lacks 100 octets" in seen.anomalies[0].reason
    assert seen.session.version == "TLSv1.3"
    assert seen.session.sni is None


def test_close_and_alerts_only_come_with_the_end() -> None:
    seen = observe(TLS13.client, TLS13.server, parse_keylog(TLS13.keylog))
    assert seen.session.alerts == ()
    seen.finish()
    assert [a.sender for a in seen.session.alerts] == ["client", "server"]


def test_times_that_step_back_change_no_plaintext() -> None:
    def backwards(records: Sequence[TlsRecordView]) -> list[TlsRecordView]:
        head = [b"%c" % r.content_type + r.version.to_bytes(2, "big") + r.length.to_bytes(2, "big") for r in records]
        return [
            record_view(h + r.fragment(), r.stream_offset, BEGIN - 1_000_000 * i, r.first_packet)
            for i, (h, r) in enumerate(zip(head, records, strict=True))
        ]

    seen = observe(backwards(TLS13.client), backwards(TLS13.server), parse_keylog(TLS13.keylog))
    assert octets(seen) == (TLS13.said.client, TLS13.said.server)


def test_a_renegotiation_without_end_is_bounded() -> None:
    pair = Pair(Settings(version=SSL.TLS1_2_VERSION, ciphers="NULL-SHA256")).handshake()
    records = list(pair.from_client.records)
    again = [r for r in records if r.content_type == 22 and r.first_packet == 1] * 3_000
    began = time.process_time()
    observe(records + again, pair.from_server.records, None).finish()
    assert time.process_time() - began < 5


# -- octets that mean no good --------------------------------------------------------------------------------------------------------------


def _damage(records: Sequence[TlsRecordView], edits: Sequence[tuple[int, int, int]]) -> list[TlsRecordView]:
    """Edits of (record, place, octet): place 0-4 change the header, the rest the content."""
    contents = [
        bytearray(bytes([r.content_type]) + r.version.to_bytes(2, "big") + r.length.to_bytes(2, "big") + r.fragment())
        for r in records
    ]
    for which, place, octet in edits:
        data = contents[which % len(contents)]
        data[place % len(data)] = octet
    return [
        record_view(bytes(data), r.stream_offset, r.first_seen_at, r.first_packet)
        for data, r in zip(contents, records, strict=True)
    ]


_EDITS = st.lists(
    st.tuples(st.integers(0, 12), st.one_of(st.integers(0, 60), st.integers(0, 3_000)), st.integers(0, 255)), max_size=8
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([TLS13, TLS12]), _EDITS, _EDITS, st.booleans(), st.integers(0, 12))
def test_damaged_conversations(
    talk: Conversation,
    to_client: list[tuple[int, int, int]],
    to_server: list[tuple[int, int, int]],
    keys: bool,
    cut: int,
) -> None:
    """Nothing raises; whatever comes out as plaintext is a part of what was said."""
    client, server = _damage(talk.client, to_client), _damage(talk.server, to_server)
    seen = observe(client[: len(client) - cut] or client, server[cut:], parse_keylog(talk.keylog) if keys else None)
    asked, answered = octets(seen)
    assert to_client or asked in talk.said.client
    assert len(answered) <= len(talk.said.server)
    session = seen.session
    assert session.finished_at is None or session.finished_method in ("exact", "grammar")
    assert all(anomaly.reason.isprintable() for anomaly in seen.anomalies)
    assert len(seen.anomalies) <= 402


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([20, 21, 22, 23, 24, 128, 99]), st.binary(max_size=80)), max_size=12),
    st.lists(st.tuples(st.sampled_from([20, 21, 22, 23, 24]), st.binary(max_size=80)), max_size=12),
)
def test_records_of_random_octets(client: list[tuple[int, bytes]], server: list[tuple[int, bytes]]) -> None:
    def records(side: list[tuple[int, bytes]]) -> list[TlsRecordView]:
        return [
            record_view(bytes([kind, 3, 3]) + len(data).to_bytes(2, "big") + data, 100 * i, BEGIN + i, i)
            for i, (kind, data) in enumerate(side)
        ]

    seen = observe(records(client), records(server), parse_keylog(TLS13.keylog))
    seen.finish()
    assert octets(seen) == (b"", b"")
    assert seen.session.decrypted is False


# -- moments and compression ---------------------------------------------------------------------------------------------------------------


def _moved(record: TlsRecordView, at: int) -> TlsRecordView:
    record.first_seen_at = record.last_seen_at = record.deliverable_at = at
    return record


def test_false_start_ends_the_handshake_with_the_first_request_octet() -> None:
    """RFC 7918: the client sends its request before the server's Finished is there."""
    talk = converse(Settings(version=SSL.TLS1_2_VERSION))
    sent = next(i for i, r in enumerate(talk.client) if r.content_type == 20) + 1
    delivered = next(i for i, r in enumerate(talk.server) if r.content_type == 20) + 1
    _moved(talk.client[sent], BEGIN + 100)
    _moved(talk.client[sent + 1], BEGIN + 250)
    _moved(talk.server[delivered], BEGIN + 900)
    assert observe(talk.client, talk.server, None).session.finished_at == BEGIN + 250
    _moved(talk.server[delivered], BEGIN + 200)
    assert observe(talk.client, talk.server, None).session.finished_at == BEGIN + 200


def test_compressed_records() -> None:
    """RFC 3749: DEFLATE before protection, one stream over all records; here under a NULL cipher, whose MAC nobody can check."""
    import zlib

    talk = converse(Settings(version=SSL.TLS1_2_VERSION, ciphers="NULL-SHA256", options=1 << 14))

    def deflated(records: Sequence[TlsRecordView]) -> list[TlsRecordView]:
        packer = zlib.compressobj()
        sender = Sender(1)
        protected = False
        for record in records:
            content = record.fragment()
            if protected:
                content = packer.compress(content[:-32]) + packer.flush(zlib.Z_SYNC_FLUSH) + content[-32:]
            elif content[:1] == b"\x02":
                method = 38 + 1 + content[38] + 2
                content = content[:method] + b"\x01" + content[method + 1 :]
            protected = protected or record.content_type == 20
            head = bytes([record.content_type]) + record.version.to_bytes(2, "big")
            sender.sent(head + len(content).to_bytes(2, "big") + content, record.first_seen_at)
        return sender.records

    seen = observe(deflated(talk.client), deflated(talk.server), None)
    assert octets(seen) == (talk.said.client, talk.said.server)
    assert seen.anomalies == []


def test_a_decompression_bomb_is_one_lost_record() -> None:
    import zlib

    from netdiag.protocols.tls.epochs import Epoch, EpochKind
    from netdiag.protocols.tls.suites import suite_of

    epoch = Epoch(EpochKind.CONNECTION, "CLIENT_RANDOM").ready(None, suite_of(2), 0x0303, deflated=True)
    assert epoch.inflated(zlib.compress(bytes(10_000_000))) is None
    fresh = Epoch(EpochKind.CONNECTION, "CLIENT_RANDOM").ready(None, suite_of(2), 0x0303, deflated=True)
    assert fresh.inflated(b"\xff\xff\xff") is None


def test_without_keys_the_cipher_library_is_not_loaded() -> None:
    """Its import costs more than reading a thousand handshakes."""
    import subprocess
    import sys

    program = """
import sys
from netdiag.protocols.tls.observe import observe
from netdiag.wire.record_view import TlsRecordView

def records(*contents):
    return [TlsRecordView(content_type=kind, version=0x303, length=len(data), stream_offset=0, first_seen_at=1, last_seen_at=1,
        deliverable_at=1, first_packet=1, last_packet=1, missing_bytes=0, read=lambda data=data: data) for kind, data in contents]

client = b"\\1\\0\\0\\x2b\\3\\3" + bytes(32) + b"\\0\\0\\4\\xc0\\x2f\\0\\x2f\\1\\0"
server = b"\\2\\0\\0\\x26\\3\\3" + bytes(32) + b"\\0\\xc0\\x2f\\0" + b"\\x0e\\0\\0\\0"
change, finished, data = (20, b"\\1"), (22, bytes(40)), (23, bytes(50))
session = observe(records((22, client), change, finished, data), records((22, server), change, finished, data), None).session
assert session.cipher_suite == "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", session
assert session.finished_method == "exact" and session.missing_secret == "CLIENT_RANDOM", session
assert not any(name.partition(".")[0] == "cryptography" for name in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
