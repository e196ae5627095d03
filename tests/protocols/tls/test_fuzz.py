"""Seeded mutation of real conversations and key logs: nothing raises, nothing hangs, nothing grows; a short run always, 100,000 cases on demand."""

from __future__ import annotations

import random
import time
from functools import lru_cache

import pytest
from OpenSSL import SSL

from netdiag.protocols.tls.keylog import parse_keylog
from netdiag.protocols.tls.observe import observe
from netdiag.wire.record_view import TlsRecordView
from tests.support.tls_peers import Conversation, Settings, converse

SLOWEST_CASE_S = 5.0
Records = list[TlsRecordView]


@lru_cache(maxsize=1)
def seeds() -> list[Conversation]:
    older = SSL.TLS1_2_VERSION
    return [
        converse(one, bulk_bytes=1_024)
        for one in (
            Settings(alpn=(b"h2", b"http/1.1")),
            Settings(suites="TLS_AES_128_CCM_8_SHA256", client_key="ecdsa"),
            Settings(server_group="secp384r1"),
            Settings(version=older, ciphers="ECDHE-RSA-AES128-GCM-SHA256", alpn=(b"h2",)),
            Settings(version=older, ciphers="AES128-SHA", client_key="rsa"),
            Settings(version=older, ciphers="NULL-SHA256"),
            Settings(version=SSL.TLS1_VERSION, ciphers="CAMELLIA128-SHA"),
        )
    ]


def mutated(records: Records, dice: random.Random) -> Records:
    """Records dropped, repeated, swapped, cut, and with octets of header and content changed."""
    out: Records = []
    for record in records:
        act = dice.random()
        if act < 0.03:
            continue
        out.append(_changed(record, dice) if act < 0.25 else record)
        if act > 0.97:
            out.append(record)
    if len(out) > 1 and dice.random() < 0.1:
        at = dice.randrange(len(out) - 1)
        out[at], out[at + 1] = out[at + 1], out[at]
    return out[dice.randrange(3) if dice.random() < 0.1 else 0 :]


def _changed(record: TlsRecordView, dice: random.Random) -> TlsRecordView:
    content = bytearray(record.fragment())
    for _ in range(dice.randrange(4)):
        if content:
            content[dice.randrange(len(content))] = dice.choice((0, 1, 2, 0x7F, 0x80, 0xFF, dice.randrange(256)))
    if dice.random() < 0.2:
        del content[dice.randrange(len(content) + 1) :]
    if dice.random() < 0.2:
        content += dice.randbytes(dice.randrange(64))
    octets = bytes(content)
    return TlsRecordView(
        content_type=dice.choice((20, 21, 22, 23, 24, 128)) if dice.random() < 0.1 else record.content_type,
        version=dice.choice((0, 0x300, 0x301, 0x304, 0x7F12, 0xFFFF)) if dice.random() < 0.1 else record.version,
        length=len(octets) if dice.random() < 0.9 else record.length,
        stream_offset=max(0, record.stream_offset + (dice.randrange(-50, 5_000) if dice.random() < 0.1 else 0)),
        first_seen_at=record.first_seen_at,
        last_seen_at=None if dice.random() < 0.1 else record.last_seen_at,
        deliverable_at=None if dice.random() < 0.1 else record.deliverable_at,
        first_packet=record.first_packet,
        last_packet=record.last_packet,
        missing_bytes=dice.randrange(100) if dice.random() < 0.1 else 0,
        read=lambda: octets,
    )


def damaged_log(text: bytes, dice: random.Random) -> bytes:
    data = bytearray(text)
    for _ in range(dice.randrange(6)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    lines = bytes(data).splitlines()
    dice.shuffle(lines)
    return b"\n".join(lines[: dice.randrange(len(lines) + 1)])


def run(cases: int, seed: int) -> float:
    """The slowest case in seconds."""
    slowest = 0.0
    for case in range(cases):
        dice = random.Random(seed * 1_000_003 + case)
        talk = dice.choice(seeds())
        client, server = mutated(talk.client, dice), mutated(talk.server, dice)
        log = (
            None
            if dice.random() < 0.2
            else parse_keylog(damaged_log(talk.keylog, dice) if dice.random() < 0.4 else talk.keylog)
        )
        began = time.process_time()
        seen = observe(client, server, log)
        size = 0
        for chunks in (seen.client, seen.server):
            for chunk in chunks or ():
                size += len(chunk.data)
                assert chunk.deliverable_at >= 0
        session = seen.session
        slowest = max(slowest, time.process_time() - began)
        assert size <= sum(r.length for r in (*client, *server)) + (1 << 14), case
        assert session.finished_at is None or session.finished_method is not None, case
        assert len(seen.anomalies) <= 402, case
        assert all(a.reason.isprintable() for a in seen.anomalies), case
    return slowest


def test_a_short_run() -> None:
    assert run(400, seed=1) < SLOWEST_CASE_S


@pytest.mark.slow
def test_a_hundred_thousand_cases() -> None:
    assert run(100_000, seed=2) < SLOWEST_CASE_S
