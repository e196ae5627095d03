"""What a file is, by the octets it begins with: cut inside a magic number, recognised and not read, or no capture at all."""

from __future__ import annotations

import re
import struct

from netdiag.capture.pcap import MAGICS
from netdiag.errors import READS, CaptureFileError, NotACapture, UnsupportedFormat
from netdiag.sanitise import one_line
from netdiag.wire.octets import Octets

UNKNOWN = "unknown"
LONGEST_MAGIC_BYTES = 12
"""So many octets tell every format that netdiag reads."""
SAMPLE_BYTES = 4096
"""So many are looked at to name what netdiag does not read."""

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
)


CUT_MAGICS: tuple[tuple[bytes, int, str], ...] = (
    (b"\x0a\x0d\x0d\x0a", 2, "pcapng capture"),
    *((magic, 2, "pcap capture") for magic in MAGICS),
    (b"\x1f\x8b\x08", 2, "gzip-compressed file"),
    (b"\x28\xb5\x2f\xfd", 2, "zstd-compressed file"),
    (b"\x04\x22\x4d\x18", 2, "lz4-compressed file"),
)
"""Magic numbers, and how many of their octets are enough to believe in one that is cut: a line feed alone is an empty line of text."""


def cut_magic(start: bytes) -> str | None:
    """What a file of these few octets would have become, if they are the beginning of a magic number; else None."""
    for magic, enough, name in CUT_MAGICS:
        if enough <= len(start) < len(magic) and magic.startswith(start):
            return name
    return None


def may_be_capture(start: bytes) -> bool:
    """False: no format that netdiag reads begins like this; the rest need not be fetched to say so."""
    return start[:4] in MAGICS or start.startswith((b"\x0a\x0d\x0d\x0a", b"snoop"))


def refuse(octets: Octets, path: str | None) -> CaptureFileError:
    """The error for a file that is not a capture netdiag can read."""
    start = octets.text(0, SAMPLE_BYTES)
    if not start:
        return NotACapture(
            "the file is empty" if path else "the input is empty",
            path=path,
            advice="Nothing was captured, or the capturing program had not written yet.",
        )
    for signature, name, advice in SIGNATURES:
        if start.startswith(signature):
            return UnsupportedFormat(f"this is {name}, which netdiag does not read", path=path, advice=advice or None)
    if _is_erf(start):
        return UnsupportedFormat(
            "this is an ERF capture (Endace), which netdiag does not read", path=path, advice=CONVERT
        )
    for known, name, way_out in (
        (_is_har, "a HAR or JSON document, not a packet capture", None),
        (_is_key_log, "a TLS key log, not a capture", "Give it with --keylog."),
        (lambda s: s.startswith(b"\x7fELF"), "an executable, not a capture", None),
        (lambda s: s.startswith(b"SQLite format 3\0"), "an SQLite database, not a capture", None),
    ):
        if known(start):
            return NotACapture(f"this is {name}", path=path, advice=way_out)
    return NotACapture(f"not a capture file: {_beginning(start, octets.size)}", path=path, advice=READS)


def _beginning(start: bytes, size_bytes: int) -> str:
    """What is there instead: text as text, anything else in hexadecimal."""
    if size_bytes == 1:
        return f"it has one octet, {start.hex()}"
    try:
        text = start[:200].decode("ascii")
    except UnicodeDecodeError:
        text = ""
    if text and all(c.isprintable() or c in "\t\r\n" for c in text):
        first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        return f"it is text that begins with “{one_line(first, most=32)}”" if first else "it is blank text"
    return f"it begins with {start[:8].hex(' ')}"


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
