"""Registries: names as IANA and OpenSSL write them, unknown numbers kept as numbers."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from netdiag.protocols.tls.names import alert_name, draft_of, group_name, is_grease, is_tls13, version_name
from netdiag.protocols.tls.suite_names import known_suites, suite_name
from netdiag.protocols.tls.suites import suite_of


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (0x0300, "SSLv3"),
        (0x0301, "TLSv1.0"),
        (0x0302, "TLSv1.1"),
        (0x0303, "TLSv1.2"),
        (0x0304, "TLSv1.3"),
        (0x7F13, "TLSv1.3 draft 19"),
        (0xFB1A, "TLSv1.3 draft 26"),
        (0x1234, "0x1234"),
    ],
)
def test_version_names(number: int, name: str) -> None:
    assert version_name(number) == name


def test_drafts_follow_the_rules_of_tls13() -> None:
    assert is_tls13(0x7F17)
    assert draft_of(0x7F17) == 23
    assert not is_tls13(0x0303)
    assert not is_tls13(None)


def test_unknown_numbers_stay_numbers() -> None:
    assert (suite_name(0xABCD), group_name(0xABCD), alert_name(250)) == ("0xabcd", "0xabcd", "alert 250")
    assert suite_of(0xABCD).bulk is None


def test_post_quantum_group() -> None:
    assert group_name(0x11EC) == "X25519MLKEM768"


def test_grease_values_are_the_sixteen_of_rfc_8701() -> None:
    grease = [number for number in range(1 << 16) if is_grease(number)]
    assert grease == [0x0A0A + 0x1010 * i for i in range(16)]


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


def test_openssl_calls_the_suites_the_same() -> None:
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed: no second witness for the names")
    listed = subprocess.run(
        ["openssl", "ciphers", "-V", "-stdname", "ALL:COMPLEMENTOFALL:@SECLEVEL=0"],
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    ).stdout
    theirs = {}
    for row in listed.splitlines():
        number, _, name = row.split()[:3]
        high, low = (int(part, 16) for part in number.split(","))
        theirs[high << 8 | low] = name
    ours = known_suites()
    assert len(theirs) > 50
    assert {number: ours.get(number) for number in theirs} == theirs
