"""Formats that are recognised and not read, by the octets they begin with."""

from __future__ import annotations

import re
import struct

from netdiag.errors import CaptureFileError, UnsupportedFormat
from netdiag.wire.octets import Octets

EMPTY = "empty"

CONVERT = "Convert it first, for example: editcap -F pcapng INPUT OUTPUT.pcapng"

SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (b"snoop\0\0\0", "a Shomiti or Finisar capture (snoop, but not version 2)", CONVERT),
    (b"btsnoop\0", "a Bluetooth snoop capture", CONVERT),
    (b"GMBU", "a Microsoft Network Monitor 2 capture", CONVERT),
    (b"RTSS", "a Microsoft Network Monitor 1 capture", CONVERT),
    (b"TRSNIFF data    \x1a", "a Sniffer capture", CONVERT),
    (b"XCP\0", "a Sniffer (NetXRay) capture", CONVERT),
    (b"\x05VNF", "a Visual Networks capture", CONVERT),
    (b"\x7fver", "an OmniPeek capture", CONVERT),
    (b"iptrace ", "an AIX iptrace capture", CONVERT),
    (b"NetS", "a Novell LANalyzer or Shomiti capture", CONVERT),
    (b"\x54\x52\x00\x64\x00", "an HP-UX nettl trace", CONVERT),
    (b"LOGG", "a Vector BLF log", CONVERT),
    (b"\x00\x06\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00", "an ISDN i4b trace", CONVERT),
    (b"ElfFile\0", "a Windows event log", ""),
    (b"\xfd7zXZ\0", "xz-compressed", "Unpack it first: xz -dk INPUT"),
    (b"BZh", "bzip2-compressed", "Unpack it first: bunzip2 -k INPUT"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "Unpack it first."),
    (b"PK\x03\x04", "a ZIP archive", "Unpack it first."),
    (b"\x7fELF", "an executable, not a capture", ""),
    (b"SQLite format 3\0", "an SQLite database, not a capture", ""),
)


def refuse(octets: Octets, path: str | None) -> CaptureFileError:
    """The error for a file that is not a capture netdiag can read."""
    start = octets.text(0, 4096)
    for signature, name, advice in SIGNATURES:
        if start.startswith(signature):
            return UnsupportedFormat(f"this is {name}, which netdiag does not read", path=path, advice=advice or None)
    if _is_erf(start):
        return UnsupportedFormat(
            "this is an ERF capture (Endace), which netdiag does not read", path=path, advice=CONVERT
        )
    if _is_har(start):
        return UnsupportedFormat("this is a HAR or JSON document, not a packet capture", path=path)
    if _is_key_log(start):
        return UnsupportedFormat("this is a TLS key log, not a capture", path=path, advice="Give it with --keylog.")
    return CaptureFileError(
        f"not a capture file: it begins with {start[:8].hex(' ')}",
        path=path,
        offset=0,
        advice="netdiag reads pcap, pcapng and snoop, also compressed with gzip, zstd or lz4.",
    )


def _is_har(start: bytes) -> bool:
    return re.match(rb"(\xef\xbb\xbf)?\s*[\[{]", start) is not None and b'"' in start[:200]


def _is_key_log(start: bytes) -> bool:
    return re.match(rb"(#.*\n|\s)*(CLIENT_|SERVER_|EXPORTER_|EARLY_EXPORTER|RSA )", start) is not None


def _is_erf(start: bytes) -> bool:
    """ERF has no magic number: check that records (time, type, flags, rlen, lctr, wlen) follow each other with rising times."""
    here, seconds = 0, None
    count = 0
    while here + 16 <= len(start) and count < 4:
        _, now, kind, _, record_bytes, _, wire_bytes = struct.unpack_from("<IIBB", start, here) + struct.unpack_from(
            ">HHH", start, here + 10
        )
        if not 1 <= kind & 0x7F <= 48 or record_bytes < 16 or wire_bytes > 65535 or now == 0:
            return False
        if seconds is not None and not 0 <= now - seconds < 86400:
            return False
        seconds, here, count = now, here + record_bytes, count + 1
    return count >= 2 or (count == 1 and here == len(start))
