"""Sessions opened straight against ``observe``: the same data from the same records, the same Finished, or nothing at all."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial

import pytest
from OpenSSL import SSL

from netdiag.protocols.tls.client_hello import client_hello
from netdiag.protocols.tls.keylog import MASTER, KeyLog, parse_keylog
from netdiag.protocols.tls.keys import CLIENT_HANDSHAKE
from netdiag.protocols.tls.observe import observe
from netdiag.protocols.tls.server_hello import server_hello
from netdiag.protocols.tls.straight import Opened, Record, opened_12, opened_13
from netdiag.protocols.tls.straight_keys import ClearFlight, protections_12
from netdiag.protocols.tls.suites import suite_of
from netdiag.wire.record_view import TlsRecordView
from tests.support.tls_peers import Conversation, Pair, Settings, converse

OLDER = SSL.TLS1_2_VERSION
KINDS = {
    "AES-128-GCM": Settings(suites="TLS_AES_128_GCM_SHA256"),
    "AES-256-GCM": Settings(suites="TLS_AES_256_GCM_SHA384"),
    "ChaCha20": Settings(suites="TLS_CHACHA20_POLY1305_SHA256"),
    "AES-128-CCM": Settings(suites="TLS_AES_128_CCM_SHA256"),
    "client certificate": Settings(client_key="ecdsa"),
    "TLS 1.2 AES-128-GCM": Settings(version=OLDER, ciphers="ECDHE-RSA-AES128-GCM-SHA256"),
    "TLS 1.2 AES-256-GCM": Settings(version=OLDER, ciphers="ECDHE-RSA-AES256-GCM-SHA384"),
    "TLS 1.2 ChaCha20": Settings(version=OLDER, ciphers="ECDHE-RSA-CHACHA20-POLY1305"),
    "TLS 1.2 client certificate": Settings(version=OLDER, ciphers="ECDHE-RSA-AES128-GCM-SHA256", client_key="rsa"),
}


def rows(views: list[TlsRecordView]) -> list[Record]:
    return [(view.content_type, view.version, view.fragment()) for view in views]


@dataclass
class Straight:
    """What was opened, by the views that it was opened from."""

    client: tuple[list[TlsRecordView], Opened]
    server: tuple[list[TlsRecordView], Opened]


def straight(talk: Conversation, keylog: KeyLog) -> Straight | None:
    hello, answer = client_hello(talk.client[0].fragment()[4:]), server_hello(talk.server[0].fragment()[4:])
    assert hello is not None
    assert answer is not None
    assert answer.suite is not None
    secrets, suite = keylog.of(hello.random), suite_of(answer.suite)
    if MASTER not in secrets:
        client, server = talk.client[1:], talk.server[1:]
        found = opened_13(rows(client), rows(server), secrets, suite, answer.version)
    else:
        kinds = [[view.content_type for view in side] for side in (talk.client, talk.server)]
        changes = [side.index(20) for side in kinds]
        flight = ClearFlight.of(view.fragment() for view in talk.server[: changes[1]])
        assert flight is not None
        openers = protections_12(suite, answer.version, secrets[MASTER], hello.random, flight)
        client, server = talk.client[changes[0] + 1 :], talk.server[changes[1] + 1 :]
        found = None if openers is None else opened_12(rows(client), rows(server), openers)
    return None if found is None else Straight((client, found[0]), (server, found[1]))


def assert_as_observed(talk: Conversation, keylog: KeyLog, found: Straight) -> None:
    seen = observe(talk.client, talk.server, keylog)
    chunks = list(seen.client or ()), list(seen.server or ())
    for said, (views, opened) in zip(chunks, (found.client, found.server), strict=True):
        assert [chunk.data for chunk in said] == opened.contents
        assert [chunk.first_packet for chunk in said] == [views[place].first_packet for place in opened.places]
    finished = seen.handshake.client_finished, seen.handshake.server_finished
    for moment, (views, opened) in zip(finished, (found.client, found.server), strict=True):
        assert moment is not None
        assert moment.packet == views[opened.finished].last_packet
    assert seen.anomalies == []
    assert seen.session.decrypted


@pytest.mark.parametrize("kind", list(KINDS))
def test_opens_as_observed(kind: str) -> None:
    talk = converse(KINDS[kind])
    keylog = parse_keylog(talk.keylog)
    found = straight(talk, keylog)
    assert found is not None
    assert_as_observed(talk, keylog, found)


@pytest.mark.parametrize("kind", ["AES-128-GCM", "TLS 1.2 AES-128-GCM"])
def test_resumed_sessions_too(kind: str) -> None:
    first = Pair(KINDS[kind])
    converse(pair=first)
    talk = converse(pair=Pair(resumes=first))
    keylog = parse_keylog(talk.keylog)
    found = straight(talk, keylog)
    assert found is not None
    assert_as_observed(talk, keylog, found)


def test_what_a_session_may_be_resumed_by_is_told() -> None:
    talk = converse(KINDS["TLS 1.2 AES-128-GCM"])
    changed = [view.content_type for view in talk.server].index(20)
    flight = ClearFlight.of(view.fragment() for view in talk.server[:changed])
    seen = parse_keylog(talk.keylog)
    observe(talk.client, talk.server, seen).finish()
    assert flight is not None
    master = next(iter(seen.secrets.values()))[MASTER]
    assert [name for name in flight.resumable if name] == [
        name for name, key in seen._resumable.items() if key == master
    ]


@pytest.mark.parametrize("kind", ["AES-128-GCM", "TLS 1.2 AES-128-GCM"])
def test_not_with_a_damaged_record(kind: str) -> None:
    talk = converse(KINDS[kind], bulk_bytes=512)
    keylog = parse_keylog(talk.keylog)
    for side in (talk.client, talk.server):
        for view in side[-3:]:
            whole = view.fragment()
            broken = bytearray(whole)
            broken[random.Random(len(whole)).randrange(len(broken))] ^= 1
            view._read = partial(bytes, broken)
            assert straight(talk, keylog) is None
            view._read = partial(bytes, whole)
    assert straight(talk, keylog) is not None


def test_not_without_every_secret() -> None:
    talk = converse(KINDS["AES-128-GCM"])
    lines = talk.keylog.splitlines(keepends=True)
    without = b"".join(line for line in lines if not line.startswith(CLIENT_HANDSHAKE.encode()))
    assert straight(talk, parse_keylog(without)) is None


def test_not_with_a_record_that_is_missing() -> None:
    talk = converse(KINDS["AES-128-GCM"])
    keylog = parse_keylog(talk.keylog)
    assert straight(talk, keylog) is not None
    del talk.server[-2]
    assert straight(talk, keylog) is None


def test_not_a_renegotiated_session() -> None:
    pair = Pair(KINDS["TLS 1.2 AES-128-GCM"]).handshake()
    pair.send("client", b"one")
    pair.renegotiate()
    pair.send("client", b"two")
    talk = Conversation(pair.from_client.records, pair.from_server.records, pair.keylog_text, pair.said)
    assert straight(talk, parse_keylog(talk.keylog)) is None


def test_not_a_suite_whose_keys_need_more_than_its_name() -> None:
    talk = converse(Settings(version=OLDER, ciphers="ECDHE-RSA-AES128-SHA"))
    assert straight(talk, parse_keylog(talk.keylog)) is None
