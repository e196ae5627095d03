"""Records that are missing, damaged or out of the ordinary: a gap in the plaintext, then on with the next record."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from OpenSSL import SSL

from netdiag.protocols.tls.keylog import parse_keylog
from netdiag.protocols.tls.observe import TlsObservation, observe
from netdiag.wire.chunk import Chunk
from netdiag.wire.record_view import TlsRecordView
from tests.support.record_rows import RowsToo
from tests.support.tls_peers import BEGIN, Conversation, Pair, Settings, record_view
from tests.support.tls_sealer import Sealer13

MESSAGES = [f"message {i:03d};".encode() * (1 + i % 3) for i in range(40)]


def talk_of(config: Settings) -> Conversation:
    """A handshake and forty messages of the server, one record each."""
    pair = Pair(config).handshake()
    for message in MESSAGES:
        pair.send("server", message)
    return Conversation(pair.from_client.records, pair.from_server.records, pair.keylog_text, pair.said)


_TALKS: dict[str, Conversation] = {}


def talk(suite: str) -> Conversation:
    if suite not in _TALKS:
        tls13 = suite.startswith("TLS_")
        _TALKS[suite] = talk_of(
            Settings(suites=suite) if tls13 else Settings(version=SSL.TLS1_2_VERSION, ciphers=suite)
        )
    return _TALKS[suite]


def see(conversation: Conversation, server: Sequence[TlsRecordView]) -> tuple[TlsObservation, list[Chunk]]:
    seen = observe(conversation.client, server, parse_keylog(conversation.keylog))
    chunks = list(seen.server or ())
    straight = observe(RowsToo(conversation.client), RowsToo(server), parse_keylog(conversation.keylog))
    assert list(straight.server or ()) == chunks, "read in a row"
    assert list(straight.client or ()) == list(seen.client or ())
    assert straight.anomalies == seen.anomalies
    assert straight.session == seen.session
    assert (straight.unread_records, straight.key_updates) == (seen.unread_records, seen.key_updates)
    return seen, chunks


def without(records: Sequence[TlsRecordView], lost: set[int]) -> list[TlsRecordView]:
    return [record for index, record in enumerate(records) if index not in lost]


def damaged(record: TlsRecordView, **changes: object) -> TlsRecordView:
    values = {name: getattr(record, name) for name in TlsRecordView.__slots__ if name != "_read"}
    return TlsRecordView(**{**values, "read": record.fragment, **changes})  # type: ignore[arg-type]


SUITES = ["TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256", "AES128-GCM-SHA256", "ECDHE-RSA-CHACHA20-POLY1305"]


@pytest.mark.parametrize("suite", [*SUITES, "AES128-SHA", "CAMELLIA256-SHA"])
@pytest.mark.parametrize("count", [1, 7])
def test_records_missing_in_the_middle(suite: str, count: int) -> None:
    conversation = talk(suite)
    first = len(conversation.server) - 30
    seen, chunks = see(conversation, without(conversation.server, set(range(first, first + count))))
    lost = MESSAGES[-30 : -30 + count]
    assert [c.data for c in chunks] == MESSAGES[:-30] + MESSAGES[-30 + count :]
    after = chunks[10]
    if "SHA256" in suite or "CHACHA" in suite:
        assert after.missing_before == sum(map(len, lost))
        assert after.offset == sum(map(len, MESSAGES[: 10 + count]))
    else:
        assert after.missing_before == -1, "padding hides how much is missing"
    assert [c.missing_before for c in chunks if c is not after] == [0] * (len(chunks) - 1)
    assert seen.anomalies == []


@pytest.mark.parametrize("suite", SUITES)
def test_a_record_that_lacks_octets(suite: str) -> None:
    conversation = talk(suite)
    records = list(conversation.server)
    records[-5] = damaged(records[-5], missing_bytes=10, read=lambda: b"")
    seen, chunks = see(conversation, records)
    assert [c.data for c in chunks] == MESSAGES[:-5] + MESSAGES[-4:]
    assert chunks[-4].missing_before == len(MESSAGES[-5])
    assert "lacks 10 of" in seen.anomalies[0].reason
    assert seen.unread_records == (0, 1)


@pytest.mark.parametrize("suite", [*SUITES, "AES128-SHA"])
def test_a_record_with_flipped_octets_is_one_gap(suite: str) -> None:
    conversation = talk(suite)
    records = list(conversation.server)
    good = records[-5].fragment()
    records[-5] = damaged(records[-5], read=lambda: good[:-3] + b"\0\1\2")
    seen, chunks = see(conversation, records)
    assert [c.data for c in chunks] == MESSAGES[:-5] + MESSAGES[-4:]
    assert chunks[-4].missing_before != 0
    assert "does not authenticate" in seen.anomalies[0].reason
    assert seen.anomalies[0].packet == records[-5].first_packet
    assert seen.anomalies[0].offset == records[-5].stream_offset


def test_a_chained_cipher_loses_the_record_after_a_hole_and_then_goes_on() -> None:
    conversation = talk_of(Settings(version=SSL.TLS1_VERSION, ciphers="AES128-SHA"))
    records = list(conversation.server)
    hole = len(records) - 9
    _, chunks = see(conversation, without(records, {hole}))
    kept = b"".join(c.data for c in chunks)
    assert kept.endswith(b"".join(MESSAGES[-2:]))
    assert kept.startswith(b"".join(MESSAGES[:30]))
    assert len(kept) >= sum(map(len, MESSAGES)) - 3 * max(map(len, MESSAGES))


def test_the_handshake_is_missing_but_the_traffic_secrets_are_there() -> None:
    """The hellos and the first application records are captured, what lies between is not."""
    conversation = talk("TLS_AES_128_GCM_SHA256")
    server = conversation.server
    encrypted = [i for i, r in enumerate(server) if r.content_type == 23]
    seen, chunks = see(conversation, without(server, set(encrypted[:5])))
    assert b"".join(c.data for c in chunks).endswith(b"".join(MESSAGES[2:]))
    assert seen.session.decrypted


def test_nothing_can_be_read_when_the_keys_are_wrong_from_the_middle_on() -> None:
    conversation = talk("TLS_AES_128_GCM_SHA256")
    records = list(conversation.server)
    for index in range(len(records) - 30, len(records)):
        records[index] = damaged(records[index], read=lambda: bytes(60))
    seen, chunks = see(conversation, records)
    assert [c.data for c in chunks] == MESSAGES[:-30]
    assert 0 < len(seen.anomalies) <= 4, "a few are named, the rest only counted"
    assert seen.unread_records[1] == 16


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([*SUITES, "AES128-SHA"]), st.sets(st.integers(0, 60), max_size=12), st.data())
def test_any_loss_leaves_only_true_plaintext(suite: str, lost: set[int], data: st.DataObject) -> None:
    """Whatever is missing, what is read is what was sent, in order."""
    conversation = talk(suite)
    records = without(conversation.server, {i for i in lost if i < len(conversation.server)})
    if records:
        at = data.draw(st.integers(0, len(records) - 1))
        flipped = bytearray(records[at].fragment())
        flipped[data.draw(st.integers(0, len(flipped) - 1))] ^= data.draw(st.integers(0, 255))
        records[at] = damaged(records[at], read=lambda: bytes(flipped))
    _, chunks = see(conversation, records)
    rest = iter(MESSAGES)
    assert all(chunk.data in rest for chunk in chunks)
    assert all(a.offset + len(a.data) <= b.offset for a, b in pairwise(chunks))


# -- TLS 1.3: what OpenSSL's bindings do not send -----------------------------------------------------------------------------------------


def _continued(conversation: Conversation) -> tuple[Sealer13, list[TlsRecordView]]:
    """A sealer that goes on where the server stopped, and the server's records so far."""
    suite = "TLS_AES_128_GCM_SHA256"
    secret = next(
        bytes.fromhex(line.split()[2].decode())
        for line in conversation.keylog.splitlines()
        if line.startswith(b"SERVER_TRAFFIC_SECRET_0")
    )
    tickets = 2
    return Sealer13(secret, suite, sequence=tickets + len(MESSAGES)), list(conversation.server)


def _append(records: list[TlsRecordView], octets: bytes) -> None:
    last = records[-1]
    records.append(
        record_view(octets, last.stream_offset + 5 + last.length, BEGIN + 10**9 + len(records), 1_000 + len(records))
    )


def test_key_updates() -> None:
    conversation = talk("TLS_AES_128_GCM_SHA256")
    sealer, records = _continued(conversation)
    for turn in range(3):
        _append(records, sealer.seal(f"before {turn}".encode()))
        _append(records, sealer.seal(b"\x18\0\0\1\0", 22))
        sealer = sealer.updated()
    _append(records, sealer.seal(b"end"))
    seen, chunks = see(conversation, records)
    assert [c.data for c in chunks[-4:]] == [b"before 0", b"before 1", b"before 2", b"end"]
    assert seen.key_updates == 3
    assert seen.anomalies == []


def test_padded_records_and_empty_ones() -> None:
    conversation = talk("TLS_AES_128_GCM_SHA256")
    sealer, records = _continued(conversation)
    _append(records, sealer.seal(b"padded", padding=300))
    _append(records, sealer.seal(b""))
    _append(records, sealer.seal(b"zeros\0\0\0", padding=1))
    _append(records, sealer.seal(b"\1\0", 21, padding=9))
    seen, chunks = see(conversation, records)
    assert [c.data for c in chunks[-2:]] == [b"padded", b"zeros\0\0\0"]
    assert seen.session.alerts[-1].name == "close_notify"
    assert seen.session.alerts[-1].sender == "server"
    assert seen.anomalies == []


def test_a_record_of_nothing_but_zeros_has_no_type() -> None:
    conversation = talk("TLS_AES_128_GCM_SHA256")
    sealer, records = _continued(conversation)
    _append(records, sealer.seal(b"", kind=0, padding=30))
    _append(records, sealer.seal(b"next"))
    _, chunks = see(conversation, records)
    assert chunks[-1].data == b"next"


def test_tickets_are_not_application_data() -> None:
    conversation = talk("TLS_AES_128_GCM_SHA256")
    seen, chunks = see(conversation, conversation.server)
    assert seen.tickets == 2
    assert chunks[0].data == MESSAGES[0]
    index = seen.handshake.first_application[1]
    assert index is not None
    assert conversation.server[index].first_packet == chunks[0].first_packet


def test_a_dummy_change_cipher_spec_counts_as_nothing() -> None:
    conversation = talk("TLS_AES_128_GCM_SHA256")
    sealer, records = _continued(conversation)
    _append(records, b"\x14\x03\x03\0\1\1")
    _append(records, sealer.seal(b"after"))
    seen, chunks = see(conversation, records)
    assert chunks[-1].data == b"after"
    assert seen.anomalies == []


def test_a_post_handshake_message_over_two_records() -> None:
    conversation = talk("TLS_AES_128_GCM_SHA256")
    sealer, records = _continued(conversation)
    ticket = b"\x04" + (200).to_bytes(3, "big") + bytes(200)
    _append(records, sealer.seal(ticket[:50], 22))
    _append(records, sealer.seal(ticket[50:] + ticket, 22))
    _append(records, sealer.seal(b"after"))
    seen, chunks = see(conversation, records)
    assert seen.tickets == 4
    assert chunks[-1].data == b"after"


class Counted(RowsToo):
    """Knows which views were asked for."""

    def __init__(self, records: Sequence[TlsRecordView]) -> None:
        super().__init__(records)
        self.asked: set[int] = set()

    def __getitem__(self, index: int) -> TlsRecordView:  # type: ignore[override]
        self.asked.add(index)
        return super().__getitem__(index)


@pytest.mark.parametrize("suite", SUITES)
def test_application_data_in_a_row_need_no_views(suite: str) -> None:
    conversation = talk(suite)
    server = Counted(conversation.server)
    seen = observe(conversation.client, server, parse_keylog(conversation.keylog))
    assert [chunk.data for chunk in seen.server or ()] == MESSAGES
    assert len(server.asked & set(range(len(server) - len(MESSAGES), len(server)))) <= 1, (
        "the first says that data begin"
    )
