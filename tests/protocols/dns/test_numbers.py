"""Mnemonics of the numbers in DNS messages."""

from __future__ import annotations

from netdiag.protocols.dns.numbers import rcode_name, type_name


def test_known_numbers_have_their_mnemonics() -> None:
    assert [type_name(number) for number in (1, 28, 65)] == ["A", "AAAA", "HTTPS"]
    assert [rcode_name(number) for number in (0, 3, 16)] == ["NOERROR", "NXDOMAIN", "BADVERS"]


def test_unknown_numbers_are_kept() -> None:
    """RFC 3597 section 5."""
    assert (type_name(65_280), rcode_name(99)) == ("TYPE65280", "RCODE99")
