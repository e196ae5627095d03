"""What the messages after the hellos say. Hostile lengths end a message, never the analysis."""

from __future__ import annotations

from struct import Struct

from netdiag.protocols.tls import extensions as ext
from netdiag.protocols.tls.extensions import extension_block
from netdiag.protocols.tls.names import TLS13, draft_of

_U16 = Struct(">H").unpack_from


def encrypted_extensions(body: bytes) -> dict[int, bytes]:
    """RFC 8446 section 4.3.1: the extensions as far as they can be read."""
    return extension_block(body, 0)[0]


def certificates(body: bytes, *, version: int) -> list[bytes]:
    """DER certificates of a Certificate message, leaf first (RFC 8446 section 4.4.2, RFC 5246 section 7.4.2); as far as they can be read."""
    tls13 = version == TLS13 or draft_of(version) is not None
    at = 1 + body[0] if tls13 and body else 0
    at += 3
    found = []
    while at + 3 <= len(body):
        start = at + 3
        at = start + int.from_bytes(body[start - 3 : start], "big")
        if at > len(body):
            break
        found.append(body[start:at])
        if tls13:
            if at + 2 > len(body):
                break
            at += 2 + _U16(body, at)[0]
    return found


def key_exchange_group(body: bytes, exchange: str) -> int | str | None:
    """Group of a ServerKeyExchange: a named curve's number (RFC 8422 section 5.4), ``ffdhe2048`` or ``dh-1024`` for finite fields, else None.

    ``exchange`` is the key exchange of the cipher suite, such as ``ECDHE_RSA``.
    """
    at = 0
    if "PSK" in exchange:
        at = 2 + (ext.first_number(body) or 0)
    if exchange.startswith("ECDH"):
        return ext.first_number(body[at + 1 :]) if body[at : at + 1] == b"\x03" else None
    if exchange.startswith("DH"):
        length = ext.first_number(body[at:])
        prime = body[at + 2 : at + 2 + length] if length else b""
        return _finite_field(prime) if prime and len(prime) == length else None
    return None


_FFDHE_START = bytes.fromhex("ffffffffffffffffadf85458a2bb4a9a")
"""All groups of RFC 7919 begin so; the length tells which it is."""


def _finite_field(prime: bytes) -> str:
    bits = int.from_bytes(prime, "big").bit_length()
    return f"ffdhe{bits}" if prime.startswith(_FFDHE_START) else f"dh-{bits}"
