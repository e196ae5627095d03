"""Which secret opens what: from a key log and the hellos to the epochs of each direction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from netdiag.protocols.tls.assembler import message_header
from netdiag.protocols.tls.client_hello import ClientHello
from netdiag.protocols.tls.epochs import Epoch, EpochKind
from netdiag.protocols.tls.keylog import MASTER, PREMASTER, KeyLog
from netdiag.protocols.tls.names import SSL3, ExtensionType, HandshakeType
from netdiag.protocols.tls.server_hello import ServerHello
from netdiag.protocols.tls.suites import Suite, suite_of
from netdiag.wire.record_view import TlsRecordView

if TYPE_CHECKING:
    from netdiag.protocols.tls.protection import Protection

EARLY, CLIENT_HANDSHAKE, SERVER_HANDSHAKE = (
    "CLIENT_EARLY_TRAFFIC_SECRET",
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
)
CLIENT_APPLICATION, SERVER_APPLICATION = "CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"

_T = HandshakeType
_IN_TRANSCRIPT = frozenset(
    (
        _T.CLIENT_HELLO,
        _T.SERVER_HELLO,
        _T.CERTIFICATE,
        _T.CERTIFICATE_STATUS,
        _T.SERVER_KEY_EXCHANGE,
        _T.CERTIFICATE_REQUEST,
        _T.SERVER_HELLO_DONE,
        _T.CLIENT_KEY_EXCHANGE,
        _T.SUPPLEMENTAL_DATA,
    )
)


class Negotiation:
    """One handshake of TLS 1.2 and before (a renegotiation is another one), or the only one of TLS 1.3."""

    __slots__ = (
        "_client_messages",
        "_server_messages",
        "client",
        "encrypted_premaster",
        "epochs",
        "server",
        "server_done",
    )

    def __init__(self) -> None:
        self.client: ClientHello | None = None
        self.server: ServerHello | None = None
        self.encrypted_premaster: bytes | None = None
        """Body of the ClientKeyExchange."""
        self.server_done = False
        """Whether the server has said all that it says before the ClientKeyExchange (or went straight to ChangeCipherSpec)."""
        self.epochs: tuple[Epoch, Epoch] | None = None
        """Client's and server's epoch after it, once made."""
        self._client_messages: list[bytes] = []
        self._server_messages: list[bytes] = []

    def keep(self, *, from_client: bool, kind: int, body: bytes) -> None:
        """Collect a message for ``transcript``; those after the ClientKeyExchange do not belong to it."""
        if kind not in _IN_TRANSCRIPT or len(self._client_messages) + len(self._server_messages) >= len(_IN_TRANSCRIPT):
            return
        messages = self._client_messages if from_client else self._server_messages
        messages.append(message_header(kind, body) + body)

    @property
    def transcript(self) -> bytes:
        """All messages up to the ClientKeyExchange, in the order in which they were exchanged (RFC 7627 section 3)."""
        first, rest = self._client_messages[:1], self._client_messages[1:]
        return b"".join((*first, *self._server_messages, *rest))


@dataclass(frozen=True, slots=True)
class Tls13Keys:
    """What the epochs of TLS 1.3 are made from."""

    secrets: Mapping[str, bytes]
    suite: Suite | None
    version: int

    def epochs(self, *, from_client: bool, early: bool) -> list[Epoch]:
        """The epochs of one direction in order (RFC 8446 section 7.1); those without a secret open nothing."""
        if from_client:
            plan = [(EpochKind.HANDSHAKE, CLIENT_HANDSHAKE), (EpochKind.APPLICATION, CLIENT_APPLICATION)]
            if early:
                plan.insert(0, (EpochKind.EARLY, EARLY))
        else:
            plan = [(EpochKind.HANDSHAKE, SERVER_HANDSHAKE), (EpochKind.APPLICATION, SERVER_APPLICATION)]
        return [
            Epoch(kind, label, secret=self.secrets.get(label), suite=self.suite, version=self.version)
            for kind, label in plan
        ]


def by_trial(
    keylog: KeyLog,
    record: TlsRecordView,
    *,
    random: bytes | None,
    suites: Iterable[int],
    version: int,
    from_client: bool,
) -> Tls13Keys | None:
    """The session (``random`` None: any in the log) and the suite whose first key opens this record.

    For a capture with one hello only, and for an encrypted ClientHello, whose inner random nobody sees.
    """
    label = CLIENT_HANDSHAKE if from_client else SERVER_HANDSHAKE
    sessions = keylog.secrets.values() if random is None else (keylog.of(random),)
    wanted = [suite for suite in map(suite_of, suites) if not suite.exchange and suite.bulk is not None]
    fragment = record.fragment()
    for secrets in sessions:
        secret = secrets.get(label)
        for suite in wanted:
            if secret is None or len(secret) != (48 if suite.prf_hash == "sha384" else 32) or keylog.trials_left <= 0:
                continue
            keylog.trials_left -= 1
            protection = Epoch(EpochKind.HANDSHAKE, label, secret=secret, suite=suite, version=version).protection
            if protection and protection.open(0, record.content_type, record.version, fragment):
                return Tls13Keys(secrets, suite, version)
    return None


def connection_epochs(negotiation: Negotiation, master: bytes | None) -> tuple[Epoch, Epoch] | None:
    """Client's and server's epoch in TLS 1.2 and before; None when the cipher is not available, or the master secret is needed and missing."""
    client, server = negotiation.client, negotiation.server
    if server is None or server.suite is None:
        return None
    suite = suite_of(server.suite)
    if master is not None and client is not None:
        made = _protections(suite, master, client, server)
    else:
        made = _open_protections(suite, server) if is_null(suite) else []
    if len(made) != 2:
        return None
    deflated = server.compression == 1
    first, second = (
        Epoch(EpochKind.CONNECTION, MASTER).ready(one, suite, server.version, deflated=deflated) for one in made
    )
    return first, second


def _protections(suite: Suite, master: bytes, client: ClientHello, server: ServerHello) -> list[Protection]:
    """Client's and server's; fewer where the cipher is not available."""
    from netdiag.protocols.tls.key_schedule import key_block
    from netdiag.protocols.tls.protection import protection12

    if suite.bulk is None:
        return []
    made = (
        protection12(
            one,
            suite,
            version=server.version,
            encrypt_then_mac=ExtensionType.ENCRYPT_THEN_MAC in server.extensions,
            truncated_hmac=ExtensionType.TRUNCATED_HMAC in server.extensions,
        )
        for one in key_block(
            master, suite, version=server.version, client_random=client.random, server_random=server.random
        )
    )
    return [one for one in made if one is not None]


def _open_protections(suite: Suite, server: ServerHello) -> list[Protection]:
    """Of a NULL suite, whose records can be read without keys."""
    from netdiag.protocols.tls.protection import null_without_keys

    truncated = ExtensionType.TRUNCATED_HMAC in server.extensions
    return [null_without_keys(suite, truncated_hmac=truncated) for _ in (0, 1)]


def is_null(suite: Suite) -> bool:
    """Whether the suite encrypts nothing."""
    return suite.bulk is not None and suite.bulk.mode == "null"


def master_of(keylog: KeyLog, negotiation: Negotiation, *, resumed: bool) -> bytes | None:
    """Master secret of a handshake: by client random; where it was resumed by session id or ticket; or from its pre-master secret."""
    client, server = negotiation.client, negotiation.server
    if client is None or server is None:
        return None
    known = keylog.of(client.random).get(MASTER) or keylog.master_of(server.session_id)
    if known is None and resumed:
        known = keylog.master_of(client.session_id) or keylog.master_of(client.ticket)
    return known or _from_premaster(keylog, negotiation, client, server)


def _from_premaster(keylog: KeyLog, negotiation: Negotiation, client: ClientHello, server: ServerHello) -> bytes | None:
    from netdiag.protocols.tls.key_schedule import master_secret

    sealed = _sealed_start(negotiation.encrypted_premaster, server.version)
    premaster = keylog.of(client.random).get(PREMASTER) or keylog.premasters.get(sealed)
    if premaster is None or server.suite is None:
        return None
    return master_secret(
        premaster,
        version=server.version,
        hash_name=suite_of(server.suite).prf_hash,
        client_random=client.random,
        server_random=server.random,
        transcript=negotiation.transcript if ExtensionType.EXTENDED_MASTER_SECRET in server.extensions else None,
    )


def wants_premaster(keylog: KeyLog, client: ClientHello | None) -> bool:
    """Whether the ClientKeyExchange may have to be read before the master secret is known."""
    return bool(keylog.premasters) or (client is not None and PREMASTER in keylog.of(client.random))


def _sealed_start(body: bytes | None, version: int) -> bytes:
    """The eight octets by which key logs name a pre-master: the encrypted secret has a length before it since TLS 1.0."""
    if body is None:
        return b""
    return body[:8] if version == SSL3 else body[2:10]
