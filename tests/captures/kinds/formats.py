"""The same request in every file format that netdiag reads, and in files that are not whole."""

from __future__ import annotations

import gzip
import struct

import lz4.frame
import zstandard

from tests.captures.kinds.kind import Kind, in_clear
from tests.support.http_bytes import head
from tests.support.packets import (
    EPOCH_NS,
    Timed,
    block,
    interface_block,
    option,
    packet_block,
    pcap,
    pcapng,
    section_header,
    snoop,
    udp_frame,
)

CLIENT, SERVER = ("10.0.0.1", 40000), ("10.0.0.2", 80)
GET = head("GET /v1/models HTTP/1.1\nHost: api.example.com")
OK = head("HTTP/1.1 200 OK\nContent-Type: application/json\nContent-Length: 12") + b'{"data": []}'


def request() -> list[Timed]:
    """What all of these files hold."""
    return in_clear((0, GET), (1, OK))


def modified() -> bytes:
    """Kuznetzov's variant: interface index, protocol and packet type in each record header."""
    out = [struct.pack("<IHHiIII", 0xA1B2CD34, 2, 4, 0, 0, 262144, 1)]
    for at_ns, frame in request():
        seconds, rest = divmod(at_ns, 1_000_000_000)
        out.append(struct.pack("<IIIIIHBB", seconds, rest // 1000, len(frame), len(frame), 2, 8, 0, 0) + frame)
    return b"".join(out)


def two_sections() -> bytes:
    """A section in each byte order; interfaces are counted anew in the second."""
    frames = request()
    nanoseconds = {order: option(9, b"\x09", order=order) + option(0, b"", order=order) for order in "<>"}
    out = []
    for order, part in (("<", frames[:5]), (">", frames[5:])):
        out += [section_header(order=order), interface_block(order=order, options=nanoseconds[order])]
        out += [packet_block(at_ns, frame, order=order) for at_ns, frame in part]
    return b"".join(out)


def clocks() -> bytes:
    """Interfaces that count in microseconds, nanoseconds, 2^-20 s, and in seconds from an offset; each takes every fourth packet."""
    resolutions = [(10**6, b""), (10**9, option(9, b"\x09")), (2**20, option(9, b"\x94"))]
    offset = 1_600_000_000
    interfaces = [interface_block(options=options + option(0, b"")) for _, options in resolutions]
    interfaces.append(interface_block(options=option(14, struct.pack("<q", offset)) + option(0, b"")))
    packets = []
    for number, (at_ns, frame) in enumerate(request()):
        interface = number % 4
        per_second, since = (10**6, offset) if interface == 3 else (resolutions[interface][0], 0)
        ticks = (at_ns - since * 10**9) * per_second // 10**9
        packets.append(packet_block(ticks, frame, interface=interface))
    return b"".join([section_header(), *interfaces, *packets])


def simple_blocks() -> bytes:
    """Two datagrams in blocks without a time (SPB), before the conversation."""
    frames = [udp_frame(b"syslog", destination=("10.0.0.9", 514))] * 2
    simple = b"".join(block(3, struct.pack("<I", len(frame)) + frame) for frame in frames)
    whole = pcapng(request())
    first_packet = len(section_header()) + len(interface_block(options=option(9, b"\x09") + option(0, b"")))
    return whole[:first_packet] + simple + whole[first_packet:]


def cut() -> bytes:
    """The copy ended inside the last packet."""
    return pcap(request())[:-20]


def damaged() -> bytes:
    """The length of the second connection's third packet is nonsense; the third connection can be read again."""
    connections = [
        in_clear((0, GET), (1, OK), ends=(("10.0.0.1", 40000 + i), SERVER), at_ns=EPOCH_NS + i * 10**9)
        for i in range(3)
    ]
    octets = bytearray(pcap([frame for frames in connections for frame in frames]))
    record = 24
    for _ in range(len(connections[0]) + 2):
        record += 16 + struct.unpack_from("<I", octets, record + 8)[0]
    struct.pack_into("<I", octets, record + 8, 0xFFFFFFFF)
    return bytes(octets)


KINDS = (
    Kind("microseconds.pcap", "pcap, little-endian, microseconds", lambda: pcap(request(), nanosecond=False)),
    Kind("big-endian.pcap", "pcap, big-endian, nanoseconds", lambda: pcap(request(), big_endian=True)),
    Kind("modified.pcap", "pcap with longer record headers", modified),
    Kind("big-endian.pcapng", "pcapng, big-endian", lambda: pcapng(request(), big_endian=True)),
    Kind("two-sections.pcapng", "a section in each byte order", two_sections),
    Kind("clocks.pcapng", "interfaces with four resolutions and an offset", clocks),
    Kind("simple-blocks.pcapng", "packets without a time stamp are counted, not invented one", simple_blocks),
    Kind("snoop.snoop", "the format of RFC 1761, with a drop count", lambda: snoop(request(), drops=3)),
    Kind("gzip.pcap.gz", "compressed by gzip", lambda: gzip.compress(pcap(request()), mtime=0), drawn=True),
    Kind(
        "zstd.pcap.zst", "compressed by zstd", lambda: zstandard.ZstdCompressor().compress(pcap(request())), drawn=True
    ),
    Kind("lz4.pcap.lz4", "compressed by lz4", lambda: lz4.frame.compress(pcap(request())), drawn=True),
    Kind("snap-length.pcap", "only 66 octets of each frame were kept", lambda: pcap(request(), snap_bytes=66)),
    Kind("cut.pcap", "the file is cut inside its last packet", cut),
    Kind("damaged.pcap", "a damaged packet header in the middle", damaged),
)
