"""Names of cipher suites."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from netdiag.protocols.tls.suite_names import known_suites, suite_name


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


def test_numbers_and_names_are_one_to_one() -> None:
    names = known_suites()
    assert len(set(names.values())) == len(names)
    assert all(name.startswith("TLS_") for name in names.values())


def test_an_unknown_number_is_its_own_name() -> None:
    assert suite_name(0xABCD) == "0xabcd"
