"""TLS sessions that keys open from end to end: every record in its turn, and nothing in them but what a plain session has.

What ``observe`` says of such a session is known beforehand but for its data and its Finished; everything else belongs to ``observe``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from netdiag.protocols.tls.assembler import LARGEST_MESSAGE
from netdiag.protocols.tls.keys import CLIENT_APPLICATION, CLIENT_HANDSHAKE, SERVER_APPLICATION, SERVER_HANDSHAKE
from netdiag.protocols.tls.names import ContentType, HandshakeType
from netdiag.protocols.tls.protection import Protection as Opener
from netdiag.protocols.tls.protection import protection13
from netdiag.protocols.tls.suites import Suite

_T = HandshakeType
_CHANGE_CIPHER_SPEC, _ALERT = int(ContentType.CHANGE_CIPHER_SPEC), int(ContentType.ALERT)
_HANDSHAKE, _APPLICATION_DATA = int(ContentType.HANDSHAKE), int(ContentType.APPLICATION_DATA)
_FINISHED = int(_T.FINISHED)
_CLIENT_FLIGHT = frozenset({_T.CERTIFICATE, _T.COMPRESSED_CERTIFICATE, _T.CERTIFICATE_VERIFY, _T.FINISHED})
_SERVER_FLIGHT = _CLIENT_FLIGHT | {_T.ENCRYPTED_EXTENSIONS, _T.CERTIFICATE_REQUEST}
_CLIENT_LATER: frozenset[int] = frozenset()
_SERVER_LATER = frozenset({_T.NEW_SESSION_TICKET})
"""What each side may say under the keys of the handshake, and under those of the data (RFC 8446 sections 4.4 and 4.6)."""


Record = tuple[int, int, bytes]
"""Content type and version as on the wire, and the whole fragment."""


class Opened(NamedTuple):
    """What one direction said."""

    finished: int
    """The record that completes its Finished."""
    places: list[int]
    """The records with application data."""
    contents: list[bytes]


def opened_13(
    client: Sequence[Record], server: Sequence[Record], secrets: Mapping[str, bytes], suite: Suite, version: int
) -> tuple[Opened, Opened] | None:
    """Client's and server's side of a TLS 1.3 session without 0-RTT data; None where it does not open so."""
    made = [
        protection13(secret, suite, version)
        for label in (CLIENT_HANDSHAKE, CLIENT_APPLICATION, SERVER_HANDSHAKE, SERVER_APPLICATION)
        if (secret := secrets.get(label)) is not None
    ]
    epochs = [one for one in made if one is not None]
    if len(epochs) < 4:
        return None
    asked = _open_13(client, epochs[0], epochs[1], _CLIENT_FLIGHT, _CLIENT_LATER)
    answered = None if asked is None else _open_13(server, epochs[2], epochs[3], _SERVER_FLIGHT, _SERVER_LATER)
    return None if asked is None or answered is None else (asked, answered)


def _open_13(
    records: Sequence[Record], handshake: Opener, application: Opener, flight: frozenset[int], later: frozenset[int]
) -> Opened | None:
    finished, places, contents = -1, list[int](), list[bytes]()
    opener, sequence, begun = handshake, 0, b""
    for place, (kind, version, fragment) in enumerate(records):
        if kind == _CHANGE_CIPHER_SPEC:  # for middleboxes
            continue
        opened = opener.open(sequence, kind, version, fragment)
        if kind != _APPLICATION_DATA or opened is None:
            return None
        sequence += 1
        inner, content = opened
        if inner == _APPLICATION_DATA and finished >= 0 and not begun:
            if content:
                places.append(place)
                contents.append(content)
        elif inner == _HANDSHAKE:
            kinds, begun = _messages(begun + content)
            if not (flight if finished < 0 else later).issuperset(kinds):
                return None
            if _FINISHED in kinds:
                if kinds[-1] != _FINISHED or begun:
                    return None
                finished, opener, sequence = place, application, 0
        elif inner != _ALERT or begun or finished < 0:
            return None
    return Opened(finished, places, contents) if finished >= 0 and not begun else None


def _messages(octets: bytes) -> tuple[list[int], bytes]:
    """Types of the whole handshake messages, and what is left behind them."""
    kinds: list[int] = []
    at, end = 0, len(octets)
    while at + 4 <= end:
        length = int.from_bytes(octets[at + 1 : at + 4], "big")
        if length > LARGEST_MESSAGE:
            return [-1], b""
        if at + 4 + length > end:
            break
        kinds.append(octets[at])
        at += 4 + length
    return kinds, octets[at:]


def opened_12(
    client: Sequence[Record], server: Sequence[Record], openers: tuple[Opener, Opener]
) -> tuple[Opened, Opened] | None:
    """Client's and server's side of a session of TLS 1.2 or before, from behind their ChangeCipherSpecs on."""
    asked = _open_12(client, openers[0])
    answered = None if asked is None else _open_12(server, openers[1])
    return None if asked is None or answered is None else (asked, answered)


def _open_12(records: Sequence[Record], opener: Opener) -> Opened | None:
    places, contents = list[int](), list[bytes]()
    for place, (kind, version, fragment) in enumerate(records):
        opened = opener.open(place, kind, version, fragment)
        if opened is None:
            return None
        content = opened[1]
        if place == 0:
            if kind != _HANDSHAKE or _messages(content) != ([_FINISHED], b""):
                return None
        elif kind == _APPLICATION_DATA:
            if content:
                places.append(place)
                contents.append(content)
        elif kind != _ALERT:
            return None
    return Opened(0, places, contents) if records else None
