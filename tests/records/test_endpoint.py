"""Transport addresses as text."""

from __future__ import annotations

from netdiag.records.endpoint import Endpoint


def test_ipv6_addresses_stand_in_brackets() -> None:
    """RFC 3986 section 3.2.2."""
    assert str(Endpoint("192.0.2.1", 443)) == "192.0.2.1:443"
    assert str(Endpoint("2001:db8::1", 443)) == "[2001:db8::1]:443"
