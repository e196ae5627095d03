"""Record protection in the corners that no peer at hand speaks: drafts of TLS 1.3, truncated MACs, export ciphers, what is not available."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from netdiag.protocols.tls.key_schedule import WriteKeys, expand_label, key_block
from netdiag.protocols.tls.names import SSL3, TLS10, TLS12, TLS13
from netdiag.protocols.tls.protection import protection12, protection13
from netdiag.protocols.tls.suites import suite_of

SECRET = bytes(range(32))
AES128 = suite_of(0x1301)


@pytest.mark.parametrize(
    ("version", "prefix", "covers_header"),
    [
        (0x7F12, b"TLS 1.3, ", False),
        (0x7F13, b"TLS 1.3, ", False),
        (0x7F14, b"tls13 ", False),
        (0x7F18, b"tls13 ", False),
        (0x7F19, b"tls13 ", True),
        (0x7F1C, b"tls13 ", True),
        (TLS13, b"tls13 ", True),
    ],
)
def test_labels_and_associated_data_of_drafts(version: int, prefix: bytes, covers_header: bool) -> None:
    """The labels changed in draft 20, the record header entered the associated data in draft 25."""
    key = expand_label(SECRET, b"key", 16, "sha256", prefix=prefix)
    iv = expand_label(SECRET, b"iv", 12, "sha256", prefix=prefix)
    header = b"\x17\x03\x03\0\x16" if covers_header else b""
    sealed = AESGCM(key).encrypt(iv, b"hello\x17", header)
    protection = protection13(SECRET, AES128, version)
    assert protection is not None
    assert protection.open(0, 23, 0x0303, sealed) == (23, b"hello")
    assert protection.open(1, 23, 0x0303, sealed) is None


def test_what_is_not_available_is_none() -> None:
    aria = suite_of(0xC060)
    assert protection12(WriteKeys(b"", bytes(16), bytes(4)), aria, version=TLS12) is None
    assert protection13(SECRET, suite_of(0x00C7), TLS13) is None
    assert protection13(SECRET, suite_of(0x002F), TLS13) is None


def test_truncated_mac() -> None:
    """RFC 6066 section 7: ten octets of the HMAC."""
    keys = WriteKeys(b"m" * 20, b"k" * 16, b"i" * 16)
    head = (7).to_bytes(8, "big") + b"\x17\x03\x01\0\x05"
    mac = hmac.digest(keys.mac_key, head + b"hello", "sha1")[:10]
    plain = b"hello" + mac
    sealed = Cipher(algorithms.AES(keys.key), modes.CBC(keys.iv)).encryptor().update(plain + b"\0")
    for truncated, expected in ((True, (23, b"hello")), (False, None)):
        protection = protection12(keys, suite_of(0x002F), version=TLS10, truncated_hmac=truncated)
        assert protection is not None
        assert protection.open(7, 23, TLS10, sealed) == expected


@pytest.mark.parametrize("fragment", [b"", b"x", bytes(15), bytes(16), bytes(17), bytes(31), bytes(64)])
@pytest.mark.parametrize("number", [0x002F, 0x000A, 0x0005, 0x009C, 0xCCA8, 0xC09C, 0xC0A0, 0x003B, 0x0007, 0x0096])
@pytest.mark.parametrize("etm", [False, True])
def test_short_fragments_are_none(number: int, fragment: bytes, etm: bool) -> None:
    suite = suite_of(number)
    client, _ = key_block(bytes(48), suite, version=TLS12, client_random=bytes(32), server_random=bytes(32))
    protection = protection12(client, suite, version=TLS12, encrypt_then_mac=etm)
    assert protection is not None
    assert protection.open(0, 23, TLS12, fragment) is None
    protection.skip(len(fragment) + 3)
    protection.skip(len(fragment), fragment)
    assert protection.open(1, 23, TLS12, fragment) is None


@pytest.mark.parametrize("version", [SSL3, TLS10])
def test_export_keys_are_made_from_forty_bits(version: int) -> None:
    """RFC 2246 section 6.3.1, RFC 6101 section 6.2.2.1: five octets of secret, the rest from the randoms in clear."""
    suite = suite_of(0x0003)
    client, server = key_block(bytes(48), suite, version=version, client_random=b"c" * 32, server_random=b"s" * 32)
    assert (len(client.key), len(server.key), len(client.mac_key)) == (16, 16, 16)
    assert client.key != server.key
    if version == SSL3:
        again, _ = key_block(
            bytes(48), suite_of(0x0004), version=version, client_random=b"c" * 32, server_random=b"s" * 32
        )
        expected = hashlib.md5(again.key[:5] + b"c" * 32 + b"s" * 32, usedforsecurity=False).digest()
        assert client.key == expected
    assert protection12(client, suite, version=version) is not None


def test_single_des() -> None:
    suite = suite_of(0x0009)
    client, _ = key_block(bytes(48), suite, version=TLS10, client_random=bytes(32), server_random=bytes(32))
    assert (len(client.key), len(client.iv)) == (8, 8)
    assert protection12(client, suite, version=TLS10) is not None
