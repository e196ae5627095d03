"""Who is told what the records of a TLS direction say."""

from __future__ import annotations

from typing import Protocol, TypeVar

from netdiag.wire.record_view import TlsRecordView

Side = TypeVar("Side", contravariant=True)
"""The reader of a direction: ``direction.Direction``, which knows its observer, not the other way round."""


class Observer(Protocol[Side]):
    """Who is told what a direction's records say, and who supplies the keys."""

    def message(self, side: Side, kind: int, body: bytes, record: TlsRecordView) -> None:
        """One handshake message; ``record`` completes it, ``side.message_began`` has its first octet."""
        ...

    def alert(self, side: Side, level: int, description: int, record: TlsRecordView) -> None:
        """One alert that could be read."""
        ...

    def change_cipher_spec(self, side: Side) -> None:
        """A ChangeCipherSpec; the observer moves the direction on, or ignores it (TLS 1.3)."""
        ...

    def first_protected(self, side: Side, record: TlsRecordView) -> None:
        """An application_data record where the direction is still in clear; the observer moves the direction on."""
        ...

    def discards_early_data(self) -> bool:
        """Whether the client's 0-RTT data were rejected: they never reached the peer's application (RFC 8446 section 4.2.10)."""
        ...
