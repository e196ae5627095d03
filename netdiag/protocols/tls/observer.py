"""Who is told what the records of a TLS direction say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from netdiag.protocols.tls.direction import Direction
    from netdiag.protocols.tls.epochs import Epoch
    from netdiag.wire.record_view import TlsRecordView


class Observer(Protocol):
    """Who is told what a direction's records say, and who supplies the keys."""

    def message(self, side: Direction, kind: int, body: bytes, record: TlsRecordView) -> None:
        """One handshake message; ``record`` completes it, ``side.message_began`` has its first octet."""
        ...

    def alert(self, side: Direction, level: int, description: int, record: TlsRecordView) -> None:
        """One alert that could be read."""
        ...

    def change_cipher_spec(self, side: Direction) -> None:
        """A ChangeCipherSpec; the observer moves the direction on, or ignores it (TLS 1.3)."""
        ...

    def first_protected(self, side: Direction, record: TlsRecordView) -> None:
        """An application_data record where the direction is still in clear; the observer moves the direction on."""
        ...

    def discards(self, epoch: Epoch) -> bool:
        """Whether content of this epoch never reached the peer's application (rejected 0-RTT data)."""
        ...
