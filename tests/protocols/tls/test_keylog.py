"""Key logs: every usable line is used, every other one is named by its line number and never repeated."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.tls.keylog import KeyLog, merge_keylogs, parse_keylog

RANDOM = bytes(range(32))
MASTER = bytes(range(48))
LABELS = [
    "CLIENT_EARLY_TRAFFIC_SECRET",
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
]


def line(label: str, random_octets: bytes = RANDOM, secret: bytes = MASTER) -> bytes:
    return f"{label} {random_octets.hex()} {secret.hex()}".encode()


def reasons(log: KeyLog) -> list[str]:
    return [anomaly.reason for anomaly in log.anomalies]


@pytest.mark.parametrize("label", ["CLIENT_RANDOM", *LABELS])
def test_a_secret_is_found_by_its_random_and_label(label: str) -> None:
    log = parse_keylog(line(label))
    assert log.of(RANDOM) == {label: MASTER}
    assert log.entries == 1
    assert not log.anomalies


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_line_ends_comments_and_blank_lines(end: bytes) -> None:
    text = end.join([b"# a comment", b"", line("CLIENT_RANDOM"), b"   ", line(LABELS[1]), b""])
    log = parse_keylog(text)
    assert set(log.of(RANDOM)) == {"CLIENT_RANDOM", LABELS[1]}
    assert not log.anomalies


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks(encoding: str) -> None:
    text = (line("CLIENT_RANDOM") + b"\r\n").decode().encode(encoding)
    assert parse_keylog(text).of(RANDOM)["CLIENT_RANDOM"] == MASTER


@pytest.mark.parametrize(
    "label",
    [
        "EXPORTER_SECRET",
        "EARLY_EXPORTER_SECRET",
        "EARLY_EXPORTER_MASTER_SECRET",
        "ECH_SECRET",
        "ECH_CONFIG",
        "QUIC_CLIENT_TRAFFIC_SECRET_0",
        "CLIENT_TRAFFIC_SECRET_1",
        "SOMETHING_NEW",
    ],
)
def test_labels_that_are_not_needed_are_no_damage(label: str) -> None:
    log = parse_keylog(line(label))
    assert (log.entries, log.ignored, log.anomalies) == (0, 1, [])


def test_older_forms() -> None:
    sealed = bytes(8)
    session = b"\x07" * 32
    text = b"\n".join(
        [
            f"RSA {sealed.hex()} {MASTER.hex()}".encode(),
            f"RSA Session-ID:{session.hex()} Master-Key:{MASTER.hex()}".encode(),
            line("PMS_CLIENT_RANDOM", secret=b"any length"),
        ]
    )
    log = parse_keylog(text)
    assert log.premasters == {sealed: MASTER}
    assert log.master_of(session) == MASTER
    assert log.of(RANDOM) == {"PMS_CLIENT_RANDOM": b"any length"}
    assert log.needs_transcript
    assert not log.anomalies


@pytest.mark.parametrize(
    ("damaged", "said"),
    [
        (b"CLIENT_RANDOM", "1 words"),
        (b"CLIENT_RANDOM " + RANDOM.hex().encode(), "2 words"),
        (line("CLIENT_RANDOM") + b" more", "4 words"),
        (line("CLIENT_RANDOM")[:-1], "odd number"),
        (line("CLIENT_RANDOM").replace(b"0f", b"zz"), "not hexadecimal"),
        (line("CLIENT_RANDOM", random_octets=b"short"), "client random of 5 octets"),
        (line("CLIENT_RANDOM", secret=bytes(47)), "of 47 octets"),
        (line("SERVER_TRAFFIC_SECRET_0", secret=bytes(31)), "of 31 octets"),
        (b"client_random aa bb", "no label"),
        (b"RSA zz zz", "not hexadecimal"),
        (b"RSA aa bb", "RSA secret of 1 octets"),
        (b"RSA aa " + MASTER.hex().encode(), "unknown form"),
        (b"\x00\xff\x1b[31m\xfe", "1 words"),
    ],
)
def test_a_damaged_line_is_named_by_its_number_and_the_rest_is_used(damaged: bytes, said: str) -> None:
    log = parse_keylog(b"\n".join([line(LABELS[0]), damaged, line(LABELS[1])]), origin="keys.log")
    assert set(log.of(RANDOM)) == {LABELS[0], LABELS[1]}
    (reason,) = reasons(log)
    assert reason.startswith("keys.log, line 2: ")
    assert said in reason
    assert reason.isprintable()


def test_reasons_never_repeat_a_secret() -> None:
    log = parse_keylog(f"{MASTER.hex()} {RANDOM.hex()} {MASTER.hex()}\nSERVER_{MASTER.hex()} x y\n".encode())
    assert len(log.anomalies) == 2
    assert all(MASTER.hex()[:8] not in reason for reason in reasons(log))


def test_two_secrets_for_one_session_keep_the_first() -> None:
    log = parse_keylog(line("CLIENT_RANDOM") + b"\n" + line("CLIENT_RANDOM", secret=bytes(48)))
    assert log.of(RANDOM)["CLIENT_RANDOM"] == MASTER
    assert "line 2" in reasons(log)[0]


def test_the_same_line_twice_is_no_anomaly() -> None:
    assert not parse_keylog(b"\n".join([line("CLIENT_RANDOM")] * 3)).anomalies


def test_a_flood_of_damage_stays_short() -> None:
    log = parse_keylog(b"garbage\n" * 5_000)
    assert len(log.anomalies) == 101
    assert "4900 more lines" in reasons(log)[-1]


def test_merge_prefers_the_first_and_keeps_both() -> None:
    merged = merge_keylogs(
        [
            ("a", line("CLIENT_RANDOM") + b"\nbad"),
            ("capture", line("CLIENT_RANDOM", secret=bytes(48)) + b"\n" + line(LABELS[0])),
        ]
    )
    assert merged.of(RANDOM) == {"CLIENT_RANDOM": MASTER, LABELS[0]: MASTER}
    assert reasons(merged) == ["a, line 2: 1 words, 3 expected"]
    assert bool(merged)
    assert not KeyLog()


def test_remembered_masters_open_resumed_sessions() -> None:
    log = KeyLog()
    log.remember(b"ticket", MASTER)
    log.remember(b"", bytes(48))
    assert log.master_of(b"ticket") == MASTER
    assert log.master_of(b"") is None
    assert log.merge(KeyLog()).master_of(b"ticket") == MASTER


@given(st.randoms(use_true_random=False), st.integers(0, 40))
def test_order_and_foreign_sessions_do_not_matter(shuffler: random.Random, foreign: int) -> None:
    lines = [line(label) for label in LABELS]
    lines += [line("CLIENT_RANDOM", random_octets=bytes([i]) * 32) for i in range(100, 100 + foreign)]
    shuffler.shuffle(lines)
    log = parse_keylog(b"\n".join(lines))
    assert log.of(RANDOM) == dict.fromkeys(LABELS, MASTER)
    assert len(log.secrets) == foreign + 1


@given(st.binary(max_size=400), st.integers(0, 2_000), st.integers(0, 255))
def test_any_octets_are_survived(junk: bytes, at: int, octet: int) -> None:
    text = bytearray(b"\n".join(line(label) for label in LABELS))
    text[at % len(text)] = octet
    for data in (junk, bytes(text), bytes(text[: at % len(text)]) + junk):
        log = parse_keylog(data)
        assert all(len(random_octets) == 32 for random_octets in log.secrets)
        assert all(reason.isprintable() for reason in reasons(log))
