"""When a TLS handshake's steps were seen."""

from __future__ import annotations

from netdiag.plain import plain
from netdiag.wire.chunk import Moment


@plain(frozen=True, slots=True, kw_only=True)
class Handshake:
    """The moments from which the ``tls`` phases are made; None where not captured or not knowable."""

    client_hello_first: Moment | None = None
    """First octet of the first ClientHello."""
    client_hello_last: Moment | None = None
    """Last octet of the last ClientHello: the second one where the server sent a HelloRetryRequest."""
    hello_retry_request: Moment | None = None
    server_hello: Moment | None = None
    server_finished: Moment | None = None
    """Record that completes the server's Finished (by ``method``)."""
    client_finished: Moment | None = None
    """Record that completes the client's Finished (by ``method``); ``seen_at`` is when its last octet was first sent."""
    first_application: tuple[int | None, int | None] = (None, None)
    """Index of the first record of application data, in the client's and in the server's records; post-handshake messages (tickets) may
    come after the server's. None when there is none, or it cannot be told."""
    first_early: int | None = None
    """Index of the client's first record of 0-RTT data; None without, or when it cannot be told."""
    method: str | None = None
    """``exact`` or ``grammar``: how the Finished records are known; None when they are not."""

    @property
    def server_hello_deliverable(self) -> int | None:
        """When the (real) ServerHello could be used."""
        return None if self.server_hello is None else self.server_hello.deliverable_at

    @property
    def server_finished_deliverable(self) -> int | None:
        """When the server's Finished could be used."""
        return None if self.server_finished is None else self.server_finished.deliverable_at

    @property
    def client_finished_sent(self) -> int | None:
        """When the client's Finished was first sent."""
        return None if self.client_finished is None else self.client_finished.seen_at
