"""What an arm offers: to targets its own protocol, to an HTTPS proxy HTTP/1.1 alone."""

from __future__ import annotations

import ssl

import pytest

from netdiag.probe.tls_offer import SessionCache, TlsOffer


@pytest.mark.parametrize(("to_proxy", "expected"), [(False, "h2"), (True, "http/1.1")])
def test_alpn_is_the_arms_for_targets_and_http_1_1_for_a_proxy(to_proxy: bool, expected: str) -> None:
    target, proxy = ssl.create_default_context(), ssl.create_default_context()
    offer = TlsOffer(protocol="h2", proxy_context=proxy)
    assert offer.engine(proxy if to_proxy else target, "host.test", 443).protocol == expected


def test_a_session_without_a_ticket_is_not_kept() -> None:
    cache = SessionCache()
    cache.keep("host.test", 443, None)
    assert cache.get("host.test", 443) is None


def test_an_arm_that_does_not_resume_keeps_nothing() -> None:
    offer = TlsOffer(protocol=None)
    offer.keep("host.test", 443, offer.engine(ssl.create_default_context(), "host.test", 443))
    assert offer.sessions is None
