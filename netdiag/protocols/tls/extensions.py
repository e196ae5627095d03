"""Extensions of the hellos (RFC 8446 section 4.2). Readers are lenient: they return what is well formed and stop at the first bad length."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

from netdiag.protocols.tls.names import ExtensionType

_HEADER = Struct(">HH")
_U16 = Struct(">H")


def read_block(data: bytes, at: int, end: int) -> tuple[dict[int, bytes], str | None]:
    """The extensions between two offsets by type, and what is wrong with the block (None: nothing).

    Of an extension that occurs twice (RFC 8446 forbids it) the first is kept.
    """
    found: dict[int, bytes] = {}
    unpack = _HEADER.unpack_from
    while at + 4 <= end:
        kind, length = unpack(data, at)
        start = at + 4
        at = start + length
        if at > end:
            return found, f"extension {kind} claims {length} octets, {end - start} are left"
        if kind not in found:
            found[kind] = data[start:at]
    return found, None if at == end else f"{end - at} octets after the last extension"


def server_name(data: bytes) -> str | None:
    """SNI (RFC 6066 section 3): the first host_name; None where there is none. Octets that are not ASCII are shown escaped."""
    if len(data) < 5 or data[2] != 0:
        return None
    length = _U16.unpack_from(data, 3)[0]
    name = data[5 : 5 + length]
    return name.decode("ascii", "backslashreplace") if len(name) == length and length else None


@lru_cache(maxsize=256)
def protocol_names(data: bytes) -> tuple[str, ...]:
    """ALPN ProtocolNameList (RFC 7301 section 3.1), GREASE values dropped."""
    names = []
    at, end = 2, len(data)
    while at < end:
        start = at + 1
        at = start + data[at]
        if at > end or at == start:
            break
        name = data[start:at]
        if not _grease_name(name):
            names.append(name.decode("ascii", "backslashreplace"))
    return tuple(names)


def _grease_name(name: bytes) -> bool:
    """RFC 8701 section 4.1: two equal octets of the form 0x?A."""
    return len(name) == 2 and name[0] == name[1] and name[0] & 0x0F == 0x0A


@lru_cache(maxsize=256)
def numbers(data: bytes, *, prefix: int) -> tuple[int, ...]:
    """A vector of 16-bit numbers after a length of ``prefix`` octets (supported_versions: 1, supported_groups: 2)."""
    length = int.from_bytes(data[:prefix], "big")
    body = data[prefix : prefix + length]
    return tuple(_U16.unpack_from(body, at)[0] for at in range(0, len(body) - 1, 2))


def key_share_groups(data: bytes) -> tuple[int, ...]:
    """Groups of a ClientHello's key_share (RFC 8446 section 4.2.8); the keys themselves are skipped."""
    groups = []
    at, end = 2, len(data)
    while at + 4 <= end:
        group, length = _HEADER.unpack_from(data, at)
        groups.append(group)
        at += 4 + length
    return tuple(groups)


def first_number(data: bytes | None) -> int | None:
    """The 16-bit number an extension begins with: selected version, selected group, selected identity."""
    return _U16.unpack_from(data)[0] if data is not None and len(data) >= 2 else None


def extension_block(body: bytes, at: int) -> tuple[dict[int, bytes], str | None]:
    """A two-octet length and the extensions after it, up to the end of the message."""
    end = len(body)
    if at + 2 > end:
        return {}, "ends in the length of the extensions"
    stop = at + 2 + _U16.unpack_from(body, at)[0]
    if stop == end:
        return read_block(body, at + 2, end)
    found, damage = read_block(body, at + 2, min(stop, end))
    return found, damage or f"extensions claim {stop - at - 2} octets, {end - at - 2} are there"


def chosen_protocol(extensions: dict[int, bytes]) -> str | None:
    """The one protocol of a server's ALPN extension (RFC 7301 section 3.1); None where absent."""
    data = extensions.get(ExtensionType.ALPN)
    names = protocol_names(data) if data else ()
    return names[0] if names else None
