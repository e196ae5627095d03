"""What each handshake message means: one rule a message, in a table by who may say it (RFC 8446 section 4, RFC 5246 section 7.4)."""

from __future__ import annotations

from collections.abc import Callable

from netdiag.protocols.tls.client_hello import ClientHello, client_hello, ssl2_client_hello
from netdiag.protocols.tls.direction import Direction
from netdiag.protocols.tls.epochs import EpochKind
from netdiag.protocols.tls.extensions import chosen_protocol
from netdiag.protocols.tls.handshake import certificates, encrypted_extensions, key_exchange_group
from netdiag.protocols.tls.names import (
    ContentType,
    ExtensionType,
    HandshakeType,
    group_name,
    is_tls13,
)
from netdiag.protocols.tls.negotiated import Negotiated
from netdiag.protocols.tls.server_hello import ServerHello, draft_hello_retry_request, server_hello
from netdiag.wire.record_view import TlsRecordView


def _client_hello(said: Negotiated, side: Direction, body: bytes, record: TlsRecordView) -> None:
    _take_client_hello(said, side, client_hello(body), record)


def _ssl2_client_hello(said: Negotiated, side: Direction, body: bytes, record: TlsRecordView) -> None:
    _take_client_hello(said, side, ssl2_client_hello(body), record)


def _take_client_hello(said: Negotiated, side: Direction, hello: ClientHello | None, record: TlsRecordView) -> None:
    if hello is None:
        side.anomalies.add("ClientHello cannot be read", packet=record.first_packet, offset=record.stream_offset)
        return
    if hello.damage:
        side.anomalies.add(f"ClientHello {hello.damage}", packet=record.first_packet, offset=record.stream_offset)
    if side.changes:
        said.begin_again(side.changes).client = hello
    elif said.negotiations[0].client is None:
        said.negotiations[0].client = hello
        said.client_hello_began, said.client_hello_record = side.message_began or record, record
        said.last_client_hello_record = record
    else:
        said.last_client_hello_record = record


def _server_hello(said: Negotiated, side: Direction, body: bytes, record: TlsRecordView) -> None:
    _take_server_hello(said, side, server_hello(body), record)


def _draft_retry(said: Negotiated, side: Direction, body: bytes, record: TlsRecordView) -> None:
    _take_server_hello(said, side, draft_hello_retry_request(body), record)


def _take_server_hello(said: Negotiated, side: Direction, hello: ServerHello | None, record: TlsRecordView) -> None:
    if hello is None or hello.damage:
        why = hello.damage if hello else "cannot be read"
        side.anomalies.add(f"ServerHello {why}", packet=record.first_packet, offset=record.stream_offset)
    if hello is None:
        return
    if hello.retry:
        said.retry, said.retry_record = hello, record
    elif side.changes:
        said.begin_again(side.changes).server = hello
    elif said.answer is None:
        _first_answer(said, side, hello, record)


def _first_answer(said: Negotiated, side: Direction, hello: ServerHello, record: TlsRecordView) -> None:
    said.negotiations[0].server = hello
    said.version = hello.version
    said.tls13 = is_tls13(hello.version)
    said.server_hello_record, said.server_hello_index = record, side.index - 1
    group = hello.group
    if group is not None and said.tls13:
        said.group = group_name(group)
    said.alpn = hello.alpn


def _encrypted_extensions(said: Negotiated, side: Direction, body: bytes, record: TlsRecordView) -> None:
    extensions = encrypted_extensions(body)
    said.alpn = chosen_protocol(extensions)
    said.early_accepted = ExtensionType.EARLY_DATA in extensions


def _server_certificate(said: Negotiated, side: Direction, body: bytes, record: TlsRecordView) -> None:
    if said.certificate_bytes is None:
        said.certificate_bytes = len(body) + 4
    said.abbreviated = False


def _server_key_exchange(said: Negotiated, side: Direction, body: bytes, record: TlsRecordView) -> None:
    said.abbreviated = False
    if said.group is None and said.suite is not None:
        group = key_exchange_group(body, said.suite.exchange)
        said.group = group_name(group) if isinstance(group, int) else group


def _server_hello_done(said: Negotiated, side: Direction, body: bytes, record: TlsRecordView) -> None:
    said.abbreviated = False
    said.negotiation(side.changes).server_done = True
    if said.flight_end_index is None:
        said.flight_end_index = side.index - 1


def _client_certificate(said: Negotiated, side: Direction, body: bytes, record: TlsRecordView) -> None:
    version = said.version or 0
    said.client_certificate = bool(certificates(body, version=version)) or bool(said.client_certificate)


def _client_key_exchange(said: Negotiated, side: Direction, body: bytes, record: TlsRecordView) -> None:
    said.negotiations[-1].encrypted_premaster = body


def _next_protocol(said: Negotiated, side: Direction, body: bytes, record: TlsRecordView) -> None:
    """NPN (draft-agl-tls-nextprotoneg-04), which SPDY used before ALPN: the client chooses, encrypted."""
    name = body[1 : 1 + body[0]] if body else b""
    said.alpn = said.alpn or name.decode("ascii", "backslashreplace") or None


def _end_of_early_data(said: Negotiated, side: Direction, body: bytes, record: TlsRecordView) -> None:
    said.end_of_early_data = True
    if side.epoch is not None and side.epoch.kind is EpochKind.EARLY:
        side.next_epoch()


def _finished(said: Negotiated, side: Direction, body: bytes, record: TlsRecordView) -> None:
    if side.finished is None:
        side.finished = record
    if side.name == "server" and said.flight_end_index is None:
        said.flight_end_index = side.index - 1
    if side.epoch is not None and side.epoch.kind is EpochKind.HANDSHAKE:
        side.next_epoch()


def _key_update(said: Negotiated, side: Direction, body: bytes, record: TlsRecordView) -> None:
    if side.epoch is not None and side.epoch.kind is EpochKind.APPLICATION:
        said.key_updates += 1
        side.update_keys()


Rule = Callable[[Negotiated, Direction, bytes, TlsRecordView], None]
_T = HandshakeType

RULES: dict[tuple[str, int], Rule] = {
    ("client", _T.CLIENT_HELLO): _client_hello,
    ("client", ContentType.SSL2_HELLO): _ssl2_client_hello,
    ("server", _T.SERVER_HELLO): _server_hello,
    ("server", _T.HELLO_RETRY_REQUEST_DRAFT): _draft_retry,
    ("server", _T.ENCRYPTED_EXTENSIONS): _encrypted_extensions,
    ("server", _T.CERTIFICATE): _server_certificate,
    ("server", _T.COMPRESSED_CERTIFICATE): _server_certificate,
    ("server", _T.SERVER_KEY_EXCHANGE): _server_key_exchange,
    ("server", _T.SERVER_HELLO_DONE): _server_hello_done,
    ("client", _T.CERTIFICATE): _client_certificate,
    ("client", _T.CLIENT_KEY_EXCHANGE): _client_key_exchange,
    ("client", _T.NEXT_PROTOCOL): _next_protocol,
    ("client", _T.END_OF_EARLY_DATA): _end_of_early_data,
    ("", _T.FINISHED): _finished,
    ("", _T.KEY_UPDATE): _key_update,
}
"""Who says what; a message that is not listed for its sender (or for both: "") tells netdiag nothing."""
