"""What DNS travels in."""

from __future__ import annotations

from netdiag.protocols.dns.transport import is_over_https


def test_dns_over_https_is_told_from_its_media_type() -> None:
    assert is_over_https((("accept", "application/dns-message"),), ())
    assert is_over_https((), (("content-type", "application/dns-message"),))
    assert not is_over_https((("accept", "*/*"),), (("content-type", "text/html"),))


def test_the_media_type_in_another_field_says_nothing() -> None:
    assert not is_over_https((("x-note", "application/dns-message"),), ())
