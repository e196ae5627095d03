"""How long the TLS decoder takes: per connection, with and without keys, and per record of application data. Prints; asserts nothing about time."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from OpenSSL import SSL

from netdiag.protocols.tls.keylog import KeyLog, parse_keylog
from netdiag.protocols.tls.observe import observe
from tests.support.tls_peers import Conversation, Pair, Settings, converse

pytestmark = pytest.mark.benchmark

OLDER = SSL.TLS1_2_VERSION
KINDS = {
    "TLS 1.3 AES-128-GCM": Settings(suites="TLS_AES_128_GCM_SHA256"),
    "TLS 1.3 AES-256-GCM": Settings(suites="TLS_AES_256_GCM_SHA384"),
    "TLS 1.3 ChaCha20": Settings(suites="TLS_CHACHA20_POLY1305_SHA256"),
    "TLS 1.3 AES-128-CCM": Settings(suites="TLS_AES_128_CCM_SHA256"),
    "TLS 1.2 AES-128-GCM": Settings(version=OLDER, ciphers="ECDHE-RSA-AES128-GCM-SHA256"),
    "TLS 1.2 AES-128-CBC": Settings(version=OLDER, ciphers="ECDHE-RSA-AES128-SHA"),
    "TLS 1.0 AES-128-CBC": Settings(version=SSL.TLS1_VERSION, ciphers="ECDHE-RSA-AES128-SHA"),
}


def _microseconds(run: Callable[[], object], times: int) -> float:
    """Median of five rounds, CPU time per call."""
    rounds = []
    for _ in range(5):
        began = time.process_time()
        for _ in range(times):
            run()
        rounds.append((time.process_time() - began) / times * 1e6)
    return sorted(rounds)[2]


@pytest.mark.parametrize("kind", ["TLS 1.3 AES-256-GCM", "TLS 1.2 AES-128-GCM"])
def test_per_connection(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    talk = converse(KINDS[kind])
    keylog = parse_keylog(talk.keylog)

    def whole() -> None:
        seen = observe(talk.client, talk.server, keylog)
        seen.finish()
        assert seen.session.decrypted

    blind = _microseconds(lambda: observe(talk.client, talk.server, None).session, 300)
    keyed = _microseconds(whole, 200)
    with capsys.disabled():
        print(f"\n{kind}: {blind:.0f} µs a connection without keys, {keyed:.0f} µs with keys")


@pytest.mark.parametrize("kind", KINDS)
def test_per_record(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for size in (100, 1_400, 16_000):
        talk = _bulk(KINDS[kind], size)
        keylog = parse_keylog(talk.keylog)
        records = len(list(observe(talk.client, talk.server, keylog).server or ()))
        assert records >= 500
        spent = sorted(_read(talk, keylog) for _ in range(5))[2]
        shown.append(f"{size} B: {spent / records * 1e6:.1f} µs ({size * records / spent / 1e6:.0f} MB/s)")
    with capsys.disabled():
        print(f"\n{kind}: {', '.join(shown)}")


def _bulk(settings: Settings, size: int) -> Conversation:
    pair = Pair(settings).handshake()
    for _ in range(500):
        pair.server.send(bytes(size))
        pair.carry()
    return Conversation(pair.from_client.records, pair.from_server.records, pair.keylog_text, pair.said)


def _read(talk: Conversation, keylog: KeyLog) -> float:
    seen = observe(talk.client, talk.server, keylog)
    began = time.process_time()
    for _ in seen.server or ():
        pass
    return time.process_time() - began


def test_key_log(capsys: pytest.CaptureFixture[str]) -> None:
    labels = (b"CLIENT_HANDSHAKE_TRAFFIC_SECRET", b"SERVER_HANDSHAKE_TRAFFIC_SECRET", b"CLIENT_TRAFFIC_SECRET_0")
    text = b"".join(b"%s %064x %096x\n" % (label, n, n) for n in range(20_000) for label in labels)
    assert parse_keylog(text).entries == 60_000
    spent = _microseconds(lambda: parse_keylog(text), 1)
    with capsys.disabled():
        print(f"\nkey log: {spent / 60_000:.2f} µs a line")
