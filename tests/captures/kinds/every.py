"""Every kind of capture in small: ``captures/kinds`` is made from here, by the packet builder of the tests."""

from __future__ import annotations

from tests.captures.kinds import dns, formats, http1, http2, links, quic, tcp, tls
from tests.captures.kinds.kind import Kind

KINDS: dict[str, Kind] = {
    kind.file: kind for room in (formats, links, tcp, tls, http1, http2, dns, quic) for kind in room.KINDS
}
"""By file name."""
