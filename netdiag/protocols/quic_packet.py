"""QUIC packets on the wire: long headers of every version, and Initial packets, whose keys are public (RFC 8999, 9000, 9001, 9369)."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from netdiag.protocols.tls.key_schedule import expand_label

VERSION_1 = 0x00000001
VERSION_2 = 0x6B3343CF
_MAX_CONNECTION_ID = 20
_MOST_PACKETS = 64


class PacketType(IntEnum):
    """RFC 9000 section 17.2; ``VERSION_NEGOTIATION`` has version 0 instead of a type."""

    INITIAL = 0
    ZERO_RTT = 1
    HANDSHAKE = 2
    RETRY = 3
    VERSION_NEGOTIATION = 4


@dataclass(frozen=True, slots=True)
class LongHeader:
    """One packet with a long header inside a datagram."""

    type: PacketType
    version: int
    destination_id: bytes
    source_id: bytes
    start: int
    """Offset of its first octet in the datagram."""
    number_at: int
    """Offset of the (protected) packet number."""
    end: int
    """Offset after the packet."""


_SALT_V1 = bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a")
_SALT_V2 = bytes.fromhex("0dede3def700a6db819381be6e269dcbf9bd2ed9")
_SALT_DRAFT_29 = bytes.fromhex("afbfec289993d24c9e9786f19c6111e04390a899")
_SALT_DRAFT_23 = bytes.fromhex("c3eef712c72ebb5a11a7d2432bb46365bef9f502")
_SALT_DRAFT_22 = bytes.fromhex("7fbcdb0e7c66bbe9193a96cd21519ebd7a02644a")
_SALTS_BY_NUMBER = {
    VERSION_1: _SALT_V1,
    VERSION_2: _SALT_V2,
    0x709A50C4: bytes.fromhex("a707c203a59b47184a1d62ca570406ea7ae3e5d3"),  # drafts of version 2
    0x51303530: bytes.fromhex("504574efd066fe2f9d945cfcdbd3a7f0d3b56b45"),  # Google Q050
    0x54303530: bytes.fromhex("7ff579e5acd072915580304c43a2367c60488310"),  # Google T050
    0x54303531: bytes.fromhex("7a4edef4e7ccee5fa4506c19124fc8ccda6e033d"),  # Google T051
    0xFACEB001: _SALT_DRAFT_22,  # mvfst
    0xFACEB002: _SALT_DRAFT_23,
    0xFACEB00E: _SALT_DRAFT_23,
}


def version_name(version: int) -> str:
    """``v1``, ``v2``, ``draft-29``, ``Q050`` (Google), or the number in hexadecimal."""
    if version in (VERSION_1, VERSION_2):
        return "v1" if version == VERSION_1 else "v2"
    if version >> 8 == 0xFF0000:
        return f"draft-{version & 0xFF}"
    text = version.to_bytes(4, "big")
    return text.decode("ascii") if is_google(version) else f"0x{version:08x}"


def is_google(version: int) -> bool:
    """``Q043``, ``Q050``, ``T051``: versions that are four characters."""
    text = version.to_bytes(4, "big")
    return text[:1] in (b"Q", b"T") and text[1:].isdigit()


def is_known(version: int) -> bool:
    """Whether a version number is one that somebody used; reserved ones (RFC 9000 section 15) count."""
    return (
        version in _SALTS_BY_NUMBER
        or 0xFF000000 < version <= 0xFF0000FF
        or is_google(version)
        or version & 0x0F0F0F0F == 0x0A0A0A0A
    )


def _salt(version: int) -> bytes | None:
    known = _SALTS_BY_NUMBER.get(version)
    if known is not None:
        return known
    if version >> 8 == 0xFF0000:
        draft = version & 0xFF
        if draft >= 33:
            return _SALT_V1
        if draft >= 29:
            return _SALT_DRAFT_29
        return _SALT_DRAFT_23 if draft >= 23 else _SALT_DRAFT_22
    return _SALT_V1 if version & 0x0F0F0F0F == 0x0A0A0A0A else None


def long_headers(datagram: bytes) -> Iterator[LongHeader]:
    """Packets with long headers at the beginning of a datagram (several may be coalesced, RFC 9000 section 12.2)."""
    pos = 0
    for _ in range(_MOST_PACKETS):
        header = _long_header(datagram, pos)
        if header is None:
            return
        yield header
        pos = header.end


def _long_header(data: bytes, start: int) -> LongHeader | None:
    if len(data) < start + 7 or not data[start] & 0x80:
        return None
    version = int.from_bytes(data[start + 1 : start + 5], "big")
    pos = start + 5
    ids = []
    for _ in range(2):
        if pos >= len(data):
            return None
        size = data[pos]
        if size > _MAX_CONNECTION_ID or pos + 1 + size > len(data):
            return None
        ids.append(data[pos + 1 : pos + 1 + size])
        pos += 1 + size
    if version == 0:
        return LongHeader(PacketType.VERSION_NEGOTIATION, 0, ids[0], ids[1], start, pos, len(data))
    kind = _type(version, data[start] >> 4 & 3)
    if kind == PacketType.RETRY:
        return LongHeader(kind, version, ids[0], ids[1], start, pos, len(data))
    if kind == PacketType.INITIAL:
        size, pos = _varint(data, pos)
        pos += size
    length, pos = _varint(data, pos)
    if pos < 0 or pos > len(data):
        return None
    # What the snap length cut off is not there; the packet still was.
    return LongHeader(kind, version, ids[0], ids[1], start, pos, min(pos + length, len(data)))


def _type(version: int, bits: int) -> PacketType:
    """RFC 9369 section 3.2 moves each type by one, so that middleboxes do not get used to them."""
    return PacketType((bits - 1) % 4) if version in (VERSION_2, 0x709A50C4) else PacketType(bits)


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    """RFC 9000 section 16; an offset beyond every datagram when it is cut."""
    if not 0 <= pos < len(data):
        return 0, 1 << 20
    size = 1 << (data[pos] >> 6)
    if pos + size > len(data):
        return 0, 1 << 20
    return int.from_bytes(data[pos : pos + size], "big") & ((1 << (8 * size - 2)) - 1), pos + size


@dataclass(frozen=True, slots=True)
class _Keys:
    key: bytes
    iv: bytes
    header: bytes


@lru_cache(maxsize=1024)
def _initial_keys(version: int, destination_id: bytes, *, from_client: bool) -> _Keys | None:
    """RFC 9001 section 5.2: from the destination connection id of the client's first Initial."""
    salt = _salt(version)
    if salt is None:
        return None
    secret = hmac.digest(salt, destination_id, "sha256")
    secret = expand_label(secret, b"client in" if from_client else b"server in", 32, "sha256")
    prefix = b"quicv2 " if version in (VERSION_2, 0x709A50C4) else b"quic "
    return _Keys(
        expand_label(secret, prefix + b"key", 16, "sha256"),
        expand_label(secret, prefix + b"iv", 12, "sha256"),
        expand_label(secret, prefix + b"hp", 16, "sha256"),
    )


def open_initial(datagram: bytes, header: LongHeader, destination_id: bytes, *, from_client: bool) -> bytes | None:
    """The frames of an Initial packet; None when these are not its keys (or octets of it are missing)."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    keys = _initial_keys(header.version, destination_id, from_client=from_client)
    sample = datagram[header.number_at + 4 : header.number_at + 20]
    if keys is None or len(sample) < 16:
        return None
    mask = Cipher(algorithms.AES(keys.header), modes.ECB()).encryptor().update(sample)
    first = datagram[header.start] ^ (mask[0] & 0x0F)
    size = (first & 3) + 1
    number = bytes(a ^ b for a, b in zip(datagram[header.number_at : header.number_at + size], mask[1:], strict=False))
    clear_header = bytes((first,)) + datagram[header.start + 1 : header.number_at] + number
    nonce = (int.from_bytes(keys.iv, "big") ^ int.from_bytes(number, "big")).to_bytes(12, "big")
    body = datagram[header.number_at + size : header.end]
    if len(body) < 16:
        return None
    try:
        return AESGCM(keys.key).decrypt(nonce, body, clear_header)
    except InvalidTag:
        return None


def crypto_frames(frames: bytes) -> list[tuple[int, bytes]]:
    """(offset, octets) of the CRYPTO frames of an Initial packet; what else it may hold is passed over (RFC 9000 section 17.2.2)."""
    out: list[tuple[int, bytes]] = []
    pos = 0
    while pos < len(frames):
        kind = frames[pos]
        pos += 1
        if kind in (0, 1):  # PADDING, PING
            continue
        if kind in (2, 3):
            pos = _skip_ack(frames, pos, ecn=kind == 3)
        elif kind in (6, 8):  # Google's versions with TLS number it 8, which in those of the RFC may not stand here
            offset, pos = _varint(frames, pos)
            size, pos = _varint(frames, pos)
            if pos + size > len(frames):
                break
            out.append((offset, frames[pos : pos + size]))
            pos += size
        else:
            break  # CONNECTION_CLOSE, or nothing that belongs here
    return out


def _skip_ack(frames: bytes, pos: int, *, ecn: bool) -> int:
    """RFC 9000 section 19.3."""
    _, pos = _varint(frames, pos)
    _, pos = _varint(frames, pos)
    ranges, pos = _varint(frames, pos)
    _, pos = _varint(frames, pos)
    for _ in range(2 * min(ranges, len(frames)) + (3 if ecn else 0)):
        _, pos = _varint(frames, pos)
    return pos
