"""What both sides of a TLS connection have said so far."""

from __future__ import annotations

from netdiag.protocols.tls.client_hello import ClientHello
from netdiag.protocols.tls.keys import Negotiation
from netdiag.protocols.tls.server_hello import ServerHello
from netdiag.protocols.tls.suites import Suite, suite_of
from netdiag.records.tls import Alert
from netdiag.wire.record_view import TlsRecordView

_MOST_NEGOTIATIONS = 1_000


class Negotiated:
    """Facts are plain attributes, None until they are known."""

    def __init__(self) -> None:
        self.version: int | None = None
        """Version negotiated in the first handshake."""
        self.tls13: bool | None = None
        """Whether that is TLS 1.3 (or a draft of it); None before a ServerHello."""
        self.negotiations: list[Negotiation] = [Negotiation()]
        self.alerts: list[Alert] = []
        self.client_hello_began: TlsRecordView | None = None
        self.client_hello_record: TlsRecordView | None = None
        """Record that completes the first ClientHello."""
        self.last_client_hello_record: TlsRecordView | None = None
        """The same of the second one after a HelloRetryRequest; else the first."""
        self.retry: ServerHello | None = None
        self.retry_record: TlsRecordView | None = None
        self.server_hello_record: TlsRecordView | None = None
        self.server_hello_index: int | None = None
        self.flight_end_index: int | None = None
        """Index of the record that ends the server's first flight: ServerHelloDone or Finished."""
        self.group: str | None = None
        self.alpn: str | None = None
        self.early_accepted: bool | None = None
        """From EncryptedExtensions; None while they cannot be read."""
        self.end_of_early_data = False
        self.certificate_bytes: int | None = None
        self.client_certificate: bool | None = None
        self.key_updates = 0
        self.tickets = 0
        self.abbreviated: bool | None = None
        """Whether the server went straight from its hello to ChangeCipherSpec (TLS 1.2 and before)."""
        self.unsupported: Suite | None = None

    @property
    def hello(self) -> ClientHello | None:
        """The first ClientHello (the last one of a retried handshake has the same random)."""
        return self.negotiations[0].client

    @property
    def answer(self) -> ServerHello | None:
        """The real ServerHello of the first handshake."""
        return self.negotiations[0].server

    @property
    def suite(self) -> Suite | None:
        """Cipher suite negotiated; a HelloRetryRequest tells it before the ServerHello does."""
        answer = self.answer or self.retry
        return None if answer is None or answer.suite is None else suite_of(answer.suite)

    def negotiation(self, number: int) -> Negotiation:
        """That after so many key changes; an empty one where there is none yet."""
        return self.negotiations[number] if number < len(self.negotiations) else Negotiation()

    def begin_again(self, number: int) -> Negotiation:
        """The negotiation after so many key changes, made where it is new."""
        while len(self.negotiations) <= min(number, _MOST_NEGOTIATIONS):
            self.negotiations.append(Negotiation())
        return self.negotiations[-1]
