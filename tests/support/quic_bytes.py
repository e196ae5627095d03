"""QUIC packets by hand: long headers of versions 1 and 2, Initial packets sealed as RFC 9001 section 5.2 and RFC 9369 say, and the hellos in them."""

from __future__ import annotations

import hmac
import struct

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

ID = bytes.fromhex("8394c8f03e515708")
V1, V2 = 1, 0x6B3343CF
TYPES = {
    V1: {"initial": 0, "0-rtt": 1, "handshake": 2, "retry": 3},
    V2: {"initial": 1, "0-rtt": 2, "handshake": 3, "retry": 0},
}


SALTS = {
    V1: bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a"),
    V2: bytes.fromhex("0dede3def700a6db819381be6e269dcbf9bd2ed9"),
}


def derived(version: int, side: int, destination: bytes) -> tuple[bytes, bytes, bytes]:
    """RFC 9001 section 5.2, with the library's HKDF: key, iv, header protection key."""

    def expand(secret: bytes, label: bytes, length: int) -> bytes:
        name = b"tls13 " + label
        info = length.to_bytes(2, "big") + bytes([len(name)]) + name + b"\0"
        return HKDFExpand(SHA256(), length, info).derive(secret)

    first = hmac.digest(SALTS[version], destination, "sha256")
    secret = expand(first, b"server in" if side else b"client in", 32)
    prefix = b"quicv2 " if version == V2 else b"quic "
    return expand(secret, prefix + b"key", 16), expand(secret, prefix + b"iv", 12), expand(secret, prefix + b"hp", 16)


def varint(value: int) -> bytes:
    return struct.pack(">H", value | 0x4000) if value < 1 << 14 else struct.pack(">I", value | 0x8000_0000)


def crypto(offset: int, octets: bytes) -> bytes:
    return b"\6" + varint(offset) + varint(len(octets)) + octets


def initial(
    frames: bytes,
    *,
    version: int = V1,
    side: int = 0,
    number: int = 0,
    destination: bytes = ID,
    source: bytes = b"\1\2\3\4",
    asked: bytes | None = None,
) -> bytes:
    """``asked``: the connection id that the keys come from, where it is not the destination's (a server's Initial)."""
    key, iv, header_key = derived(version, side, destination if asked is None else asked)
    frames = frames.ljust(64, b"\0")
    head = bytes((0xC0 | TYPES[version]["initial"] << 4 | 1,)) + version.to_bytes(4, "big")
    head += bytes((len(destination),)) + destination + bytes((len(source),)) + source
    head += b"\0" + varint(2 + len(frames) + 16) + number.to_bytes(2, "big")
    nonce = (int.from_bytes(iv, "big") ^ number).to_bytes(12, "big")
    sealed = AESGCM(key).encrypt(nonce, frames, head)
    mask = Cipher(algorithms.AES(header_key), modes.ECB()).encryptor().update(sealed[2:18])
    first = head[0] ^ (mask[0] & 0x0F)
    numbers = bytes(a ^ b for a, b in zip(head[-2:], mask[1:], strict=False))
    return bytes((first,)) + head[1:-2] + numbers + sealed


def long_packet(kind: str, *, version: int = V1) -> bytes:
    return (
        bytes((0xC0 | TYPES[version][kind] << 4,))
        + version.to_bytes(4, "big")
        + b"\4\1\2\3\4\4\5\6\7\x08"
        + varint(40)
        + b"x" * 40
    )


def extension(kind: int, body: bytes) -> bytes:
    return struct.pack(">HH", kind, len(body)) + body


def client_hello(sni: str = "api.example.com", padding: int = 0) -> bytes:
    host = sni.encode()
    extensions = extension(0, struct.pack(">HBH", len(host) + 3, 0, len(host)) + host)
    extensions += extension(16, b"\0\6\2h3\2h2") + extension(43, b"\2\3\4") + extension(21, b"\0" * padding)
    body = b"\3\3" + b"R" * 32 + b"\0" + b"\0\2\x13\1" + b"\1\0" + len(extensions).to_bytes(2, "big") + extensions
    return b"\1" + len(body).to_bytes(3, "big") + body


def server_hello() -> bytes:
    extensions = extension(43, b"\3\4") + extension(51, b"\0\x1d\0\x20" + b"k" * 32)
    body = b"\3\3" + b"S" * 32 + b"\0" + b"\x13\1" + b"\0" + len(extensions).to_bytes(2, "big") + extensions
    return b"\2" + len(body).to_bytes(3, "big") + body
