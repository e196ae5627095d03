"""What DNS messages travel in: datagrams and streams of its own ports, and HTTPS."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

PORT = 53
OVER_TLS_PORT = 853
"""RFC 7858: DNS over TLS is recognised by its port, or by ALPN ``dot``."""


def is_over_https(request_headers: Iterable[tuple[str, str]], response_headers: Iterable[tuple[str, str]]) -> bool:
    """Whether an exchange is a DNS query over HTTPS (RFC 8484 section 6): its media type is in no other use."""
    fields = itertools.chain(request_headers, response_headers)
    return any(
        name in ("accept", "content-type") and value.startswith("application/dns-message") for name, value in fields
    )
