"""Addresses that a probe may connect to."""

from __future__ import annotations

import pytest

from netdiag.probe.failures import Unreachable
from netdiag.probe.permitted import is_address, is_off_limits, permitted

BOTH = ("192.0.2.1", "2001:db8::1")


@pytest.mark.parametrize(
    ("address", "forbidden"),
    [
        ("169.254.169.254", True),
        ("169.254.1.1", True),
        ("fe80::1", True),
        ("fd00:ec2::254", True),
        ("::ffff:169.254.169.254", True),
        ("100.100.100.200", True),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("192.0.2.1", False),
        ("2001:db8::1", False),
    ],
)
def test_addresses_off_limits(address: str, forbidden: bool) -> None:
    assert is_off_limits(address) is forbidden


@pytest.mark.parametrize(("family", "left"), [(None, BOTH), ("ipv4", BOTH[:1]), ("ipv6", BOTH[1:])])
def test_a_family_leaves_its_own_addresses(family: str | None, left: tuple[str, ...]) -> None:
    assert permitted("host.test", BOTH, family=family, allow_link_local=False) == left


def test_no_address_of_the_family_is_unreachable() -> None:
    with pytest.raises(Unreachable, match=r"host\.test has no ipv6 address"):
        permitted("host.test", BOTH[:1], family="ipv6", allow_link_local=False)


def test_one_address_off_limits_forbids_the_host_unless_allowed() -> None:
    addresses = ("192.0.2.1", "169.254.169.254")
    with pytest.raises(Unreachable, match="permission"):
        permitted("host.test", addresses, family=None, allow_link_local=False)
    assert permitted("host.test", addresses, family=None, allow_link_local=True) == addresses


@pytest.mark.parametrize(
    ("name", "expected"), [("192.0.2.1", True), ("::1", True), ("example.org", False), ("", False)]
)
def test_is_address(name: str, expected: bool) -> None:
    assert is_address(name) is expected
