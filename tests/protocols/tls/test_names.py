"""Registries: names as IANA and OpenSSL write them, unknown numbers kept as numbers."""

from __future__ import annotations

import pytest

from netdiag.protocols.tls.names import alert_name, draft_of, group_name, is_grease, is_tls13, version_name
from netdiag.protocols.tls.suite_names import suite_name
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
