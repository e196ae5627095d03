"""The keys of plain sessions of TLS 1.2 and before: from the server's flight in clear to what opens both directions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from netdiag.protocols.tls.key_schedule import key_block
from netdiag.protocols.tls.names import HandshakeType
from netdiag.protocols.tls.protection import Protection, protection12
from netdiag.protocols.tls.suites import Suite

_SESSION_ID_AT = 38
"""In a ServerHello with the message's header: version and random before it."""
_TICKET_AT = 10
"""In a NewSessionTicket with the message's header: lifetime and length before it."""


class ClearFlight(NamedTuple):
    """What the server said in clear, as far as keys need it."""

    random: bytes
    resumable: list[bytes]
    """Session id and tickets: under these the session may be resumed (RFC 5246 section 7.3, RFC 5077)."""

    @classmethod
    def of(cls, contents: Iterable[bytes]) -> ClearFlight | None:
        """Of the records up to the ChangeCipherSpec, which hold whole messages. None with record compression."""
        messages = [message for content in contents for message in _messages(content)]
        hello = messages[0]
        id_end = _SESSION_ID_AT + 1 + hello[_SESSION_ID_AT]
        if hello[id_end + 2]:
            return None
        tickets = [
            m[_TICKET_AT:] for m in messages if m[0] == HandshakeType.NEW_SESSION_TICKET and len(m) >= _TICKET_AT
        ]
        return cls(hello[6:_SESSION_ID_AT], [hello[_SESSION_ID_AT + 1 : id_end], *tickets])


def _messages(content: bytes) -> list[bytes]:
    """Each with its header."""
    found, at = list[bytes](), 0
    while at < len(content):
        end = at + 4 + int.from_bytes(content[at + 1 : at + 4], "big")
        found.append(content[at:end])
        at = end
    return found


def protections_12(
    suite: Suite, version: int, master: bytes, client_random: bytes, flight: ClearFlight
) -> tuple[Protection, Protection] | None:
    """Client's and server's; None where the suite is no AEAD (the others need more of the hellos), or is not available."""
    if suite.bulk is None or not suite.bulk.aead:
        return None
    keys = key_block(master, suite, version=version, client_random=client_random, server_random=flight.random)
    client, server = (protection12(one, suite, version=version) for one in keys)
    return None if client is None or server is None else (client, server)
