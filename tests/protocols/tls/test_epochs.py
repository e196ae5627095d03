"""Keys of one direction, from a key change to the next."""

from __future__ import annotations

import zlib

import pytest

from netdiag.protocols.tls.epochs import Epoch, EpochKind
from netdiag.protocols.tls.suites import suite_of

AES_128_GCM, CHACHA, CBC_SHA, RC4_MD5 = (suite_of(number) for number in (0xC02F, 0xCCA8, 0xC013, 0x0004))
TLS13 = suite_of(0x1301)


def epoch(kind: EpochKind = EpochKind.APPLICATION, secret: bytes | None = bytes(32)) -> Epoch:
    return Epoch(kind, "CLIENT_TRAFFIC_SECRET_0", secret=secret, suite=TLS13, version=0x0304)


def connection(number: int, *, deflated: bool = False) -> Epoch:
    return Epoch(EpochKind.CONNECTION, "CLIENT_RANDOM").ready(None, suite_of(number), 0x0303, deflated=deflated)


@pytest.mark.parametrize(
    ("one", "length", "content"),
    [
        (epoch(), 117, 100),  # tag of 16, and the content type (RFC 8446 section 5.2)
        (connection(0xC02F), 124, 100),  # explicit nonce of 8, tag of 16 (RFC 5288)
        (connection(0xCCA8), 116, 100),  # no explicit nonce (RFC 7905)
        (connection(0x0004), 116, 100),  # a stream cipher's MAC, MD5
        (connection(0xC013), 116, None),  # padding hides it
        (connection(0xC02F, deflated=True), 124, None),
        (connection(0xFFFF), 124, None),
        (epoch(), 3, 0),
    ],
)
def test_content_of_a_record_by_its_length(one: Epoch, length: int, content: int | None) -> None:
    assert one.content_bytes(length) == content


def test_without_a_secret_nothing_opens_records() -> None:
    assert not epoch(secret=None).has_secret
    assert epoch(secret=None).protection is None
    assert epoch().has_secret


def test_protection_is_made_once() -> None:
    one = epoch()
    assert one.protection is not None
    assert one.protection is one.protection


def test_each_update_has_other_keys() -> None:
    """RFC 8446 section 7.2."""
    one = epoch()
    two = one.updated()
    assert (two.kind, two.label) == (one.kind, one.label)
    assert two.protection is not one.protection
    assert not epoch(secret=None).updated().has_secret


def test_compression_goes_over_all_records() -> None:
    deflate = zlib.compressobj()
    first = deflate.compress(b"hello ") + deflate.flush(zlib.Z_SYNC_FLUSH)
    second = deflate.compress(b"hello ") + deflate.flush(zlib.Z_SYNC_FLUSH)
    one = connection(0xC02F, deflated=True)
    assert one.deflates
    assert (one.inflated(first), one.inflated(second)) == (b"hello ", b"hello ")


def test_damaged_and_swollen_content_is_none() -> None:
    assert connection(0xC02F, deflated=True).inflated(b"no deflate at all") is None
    assert connection(0xC02F, deflated=True).inflated(zlib.compress(bytes(1 << 20))) is None
    assert connection(0xC02F).inflated(b"as it is") == b"as it is"
