"""The ServerHello and the HelloRetryRequest (RFC 8446 sections 4.1.3 and 4.1.4), of drafts too."""

from __future__ import annotations

from hashlib import sha256
from struct import Struct

from netdiag.protocols.tls import extensions as ext
from netdiag.protocols.tls.extensions import chosen_protocol, extension_block
from netdiag.protocols.tls.names import ExtensionType, draft_of

_U16 = Struct(">H").unpack_from


HELLO_RETRY_RANDOM = sha256(b"HelloRetryRequest").digest()
"""RFC 8446 section 4.1.3: a ServerHello with this random is a HelloRetryRequest."""


class ServerHello:
    """RFC 8446 section 4.1.3, and the HelloRetryRequest of section 4.1.4."""

    __slots__ = ("compression", "damage", "extensions", "legacy_version", "random", "retry", "session_id", "suite")

    def __init__(self, legacy_version: int, random: bytes) -> None:
        self.legacy_version = legacy_version
        self.random = random
        self.session_id = b""
        self.suite: int | None = None
        self.compression = 0
        self.extensions: dict[int, bytes] = {}
        self.retry = random == HELLO_RETRY_RANDOM
        """Whether it is a HelloRetryRequest."""
        self.damage: str | None = None

    @property
    def version(self) -> int:
        """The version chosen: supported_versions where present, else the field of old."""
        chosen = ext.first_number(self.extensions.get(ExtensionType.SUPPORTED_VERSIONS))
        return self.legacy_version if chosen is None else chosen

    @property
    def group(self) -> int | None:
        """Group of the server's key share (the one asked for, in a HelloRetryRequest); None without key share."""
        data = self.extensions.get(ExtensionType.KEY_SHARE) or self.extensions.get(ExtensionType.KEY_SHARE_DRAFT)
        return ext.first_number(data)

    @property
    def selected_psk(self) -> bool:
        """Whether it took a PSK the client offered."""
        return ExtensionType.PRE_SHARED_KEY in self.extensions

    @property
    def alpn(self) -> str | None:
        """The protocol chosen; TLS 1.3 says it in EncryptedExtensions instead."""
        return chosen_protocol(self.extensions)


def server_hello(body: bytes) -> ServerHello | None:
    """Reads the body of a ServerHello, drafts of TLS 1.3 included; None if not even version and random are there."""
    end = len(body)
    if end < 34:
        return None
    hello = ServerHello(_U16(body)[0], body[2:34])
    if (draft_of(hello.legacy_version) or 99) < 22:
        return _draft_server_hello(hello, body, 34)
    at = 35 + body[34] if end > 34 else end + 1
    hello.session_id = body[35:at]
    if at + 3 > end:
        hello.damage = "ends before the cipher suite"
        return hello
    hello.suite = _U16(body, at)[0]
    hello.compression = body[at + 2]
    if at + 3 < end:
        hello.extensions, hello.damage = extension_block(body, at + 3)
    return hello


def _draft_server_hello(hello: ServerHello, body: bytes, at: int) -> ServerHello:
    """Up to draft 21 neither session id nor compression method were sent."""
    if at + 2 > len(body):
        hello.damage = "ends before the cipher suite"
        return hello
    hello.suite = _U16(body, at)[0]
    if at + 2 < len(body):
        hello.extensions, hello.damage = extension_block(body, at + 2)
    return hello


def draft_hello_retry_request(body: bytes) -> ServerHello | None:
    """The HelloRetryRequest message of its own that drafts before 22 had (with a cipher suite since draft 19)."""
    if len(body) < 4:
        return None
    hello = ServerHello(_U16(body)[0], HELLO_RETRY_RANDOM)
    if (draft_of(hello.legacy_version) or 0) >= 19:
        return _draft_server_hello(hello, body, 2)
    hello.extensions, hello.damage = extension_block(body, 2)
    return hello
