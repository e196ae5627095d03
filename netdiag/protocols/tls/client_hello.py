"""The ClientHello (RFC 8446 section 4.1.2; in SSL 2.0 framing, RFC 5246 appendix E.2)."""

from __future__ import annotations

from struct import Struct

from netdiag.protocols.tls import extensions as ext
from netdiag.protocols.tls.extensions import extension_block
from netdiag.protocols.tls.names import TLS12, ExtensionType, is_grease

_U16 = Struct(">H").unpack_from


class ClientHello:
    """RFC 8446 section 4.1.2. Extensions are decoded when asked for."""

    __slots__ = ("compressions", "damage", "extensions", "legacy_version", "random", "session_id", "suites")

    def __init__(self, legacy_version: int, random: bytes) -> None:
        self.legacy_version = legacy_version
        self.random = random
        self.session_id = b""
        self.suites: bytes = b""
        """Cipher suites as on the wire, two octets each."""
        self.compressions: bytes = b""
        self.extensions: dict[int, bytes] = {}
        self.damage: str | None = None
        """What is wrong with it; what comes before that point has been read."""

    @property
    def suite_numbers(self) -> tuple[int, ...]:
        """Cipher suites offered, in order, GREASE included."""
        return tuple(_U16(self.suites, at)[0] for at in range(0, len(self.suites) - 1, 2))

    @property
    def server_name(self) -> str | None:
        """SNI; None where not sent."""
        data = self.extensions.get(ExtensionType.SERVER_NAME)
        return ext.server_name(data) if data else None

    @property
    def alpn(self) -> tuple[str, ...]:
        """Protocols offered, in order."""
        data = self.extensions.get(ExtensionType.ALPN)
        return ext.protocol_names(data) if data else ()

    @property
    def versions(self) -> tuple[int, ...]:
        """Numbers of supported_versions without GREASE; empty where the extension is absent (then ``legacy_version`` is the highest)."""
        data = self.extensions.get(ExtensionType.SUPPORTED_VERSIONS)
        return tuple(n for n in ext.numbers(data, prefix=1) if not is_grease(n)) if data else ()

    @property
    def groups(self) -> tuple[int, ...]:
        """supported_groups, in order, without GREASE."""
        data = self.extensions.get(ExtensionType.SUPPORTED_GROUPS)
        return tuple(n for n in ext.numbers(data, prefix=2) if not is_grease(n)) if data else ()

    @property
    def key_shares(self) -> tuple[int, ...]:
        """Groups for which a key share was sent along, without GREASE."""
        data = self.extensions.get(ExtensionType.KEY_SHARE) or self.extensions.get(ExtensionType.KEY_SHARE_DRAFT)
        return tuple(n for n in ext.key_share_groups(data) if not is_grease(n)) if data else ()

    @property
    def offers_psk(self) -> bool:
        """Whether it tries to resume by TLS 1.3 rules (or has an external PSK)."""
        return ExtensionType.PRE_SHARED_KEY in self.extensions

    @property
    def offers_early_data(self) -> bool:
        """Whether 0-RTT data follows."""
        return ExtensionType.EARLY_DATA in self.extensions

    @property
    def ticket(self) -> bytes:
        """The RFC 5077 ticket it tries to resume with; empty where it has none."""
        return self.extensions.get(ExtensionType.SESSION_TICKET, b"")

    @property
    def offers_settings(self) -> bool:
        """Whether it offers application settings (draft-vvv-tls-alps), for which the client sends a message of its own before Finished."""
        return (
            ExtensionType.APPLICATION_SETTINGS in self.extensions
            or ExtensionType.APPLICATION_SETTINGS_OLD in self.extensions
        )

    @property
    def offers_ech(self) -> bool:
        """Whether an encrypted hello is inside (real or GREASE)."""
        return (
            ExtensionType.ENCRYPTED_CLIENT_HELLO in self.extensions
            or ExtensionType.ENCRYPTED_SERVER_NAME in self.extensions
        )


def client_hello(body: bytes) -> ClientHello | None:
    """Reads the body of a ClientHello; None if not even version and random are there."""
    end = len(body)
    if end < 35:
        return None
    hello = ClientHello(_U16(body)[0], body[2:34])
    session_end = 35 + body[34]
    hello.session_id = body[35:session_end]
    if session_end + 2 > end:
        hello.damage = "ends in the session id"
        return hello
    suites_end = session_end + 2 + _U16(body, session_end)[0]
    hello.suites = body[session_end + 2 : suites_end]
    if suites_end >= end:
        hello.damage = "ends in the cipher suites"
        return hello
    at = suites_end + 1 + body[suites_end]
    hello.compressions = body[suites_end + 1 : at]
    if at < end:
        hello.extensions, hello.damage = extension_block(body, at)
    elif at > end:
        hello.damage = "ends in the compression methods"
    return hello


def ssl2_client_hello(message: bytes) -> ClientHello | None:
    """A ClientHello in SSL 2.0 framing (RFC 5246 appendix E.2), from its message type octet on; None if it is none."""
    if len(message) < 9 or message[0] != 1:
        return None
    version, suites, session, challenge = (_U16(message, at)[0] for at in (1, 3, 5, 7))
    if suites % 3 or not suites or 9 + suites + session + challenge > len(message):
        return None
    specs = message[9 : 9 + suites]
    at = 9 + suites
    # The challenge is the client random, right-aligned in 32 octets.
    hello = ClientHello(version, message[at + session : at + session + challenge].rjust(32, b"\0")[-32:])
    hello.session_id = message[at : at + session]
    hello.suites = b"".join(specs[i + 1 : i + 3] for i in range(0, suites, 3) if specs[i] == 0)
    return hello


def offered_versions(hello: ClientHello) -> tuple[int, ...]:
    """supported_versions, or the highest version that a hello without it announces."""
    return hello.versions or (min(hello.legacy_version, TLS12),)
