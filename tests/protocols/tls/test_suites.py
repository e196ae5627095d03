"""Cipher suites, taken apart by their names."""

from __future__ import annotations

import pytest

from netdiag.protocols.tls.suite_names import known_suites
from netdiag.protocols.tls.suites import suite_of


def test_suites_are_taken_apart() -> None:
    suite = suite_of(0xC028)
    assert (suite.exchange, suite.cipher, suite.hash_name, suite.prf_hash) == (
        "ECDHE_RSA",
        "AES_256_CBC",
        "sha384",
        "sha384",
    )
    ccm = suite_of(0xC0AE)
    assert ccm.bulk is not None
    assert (ccm.cipher, ccm.bulk.tag_bytes, ccm.prf_hash, ccm.mac_hash) == ("AES_128_CCM_8", 8, "sha256", None)
    rc4 = suite_of(0x0005)
    assert (rc4.exchange, rc4.mac_hash, rc4.prf_hash) == ("RSA", "sha1", "sha256")
    assert suite_of(0x1301).exchange == ""


@pytest.mark.parametrize("number", known_suites())
def test_every_known_suite_is_consistent(number: int) -> None:
    suite = suite_of(number)
    assert suite.prf_hash in ("sha256", "sha384", "sm3")
    if suite.bulk is None:
        assert suite.mac_hash is None
    else:
        assert suite.bulk.aead == (suite.mac_hash is None)
        assert (suite.bulk.mode == "cbc") == (suite.bulk.block_bytes > 0)
        assert suite.bulk.export_bytes <= suite.bulk.key_bytes


def test_the_prf_hash_is_sha256_at_least() -> None:
    """RFC 5246 section 5."""
    assert [suite_of(number).prf_hash for number in (0x0004, 0xC013, 0xC030, 0x1302, 0x00C6)] == [
        "sha256",
        "sha256",
        "sha384",
        "sha384",
        "sm3",
    ]
