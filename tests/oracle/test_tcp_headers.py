"""Every TCP frame of all public captures, field by field against tshark (``-m slow``): a difference is named here, or a failure."""

from __future__ import annotations

import subprocess
from collections import Counter, defaultdict

import pytest

from netdiag.capture.source import open_capture
from netdiag.errors import CaptureFileError
from netdiag.wire.decode import Decoder, dissect
from tests.support.tools import needs_public_captures, needs_tshark, public_captures, public_truth

FIELDS = ("tcp.seq_raw", "tcp.ack_raw", "tcp.flags", "tcp.window_size_value", "tcp.len", "tcp.hdr_len")
FRAGMENTS = "a row per IP fragment with the sequence number of its place; tshark: one for the packet"
DAMAGED = "tshark reads less of the damaged file, or takes it for another format"
QUOTED = "tshark counts the packet that an ICMP error quotes"
IP_LENGTH = "the length is the IP header's, also where it says more than the frame has; tshark: the frame's"
HEADER_LENGTH = "an impossible TCP header length counts as 20"

DIFFERENCES: dict[str, dict[str, str]] = {
    "OISF+suricata-verify/bug-6875-01__fuzz.pcap": {"more": DAMAGED},
    "OISF+suricata-verify/defrag__bug-6887-defrag-eth-vlan-ipv6-tcp__frag-eth-vlan-ipv6-tcp.pcap": {
        "more": FRAGMENTS,
        "tcp.seq_raw": FRAGMENTS,
        "tcp.len": FRAGMENTS,
    },
    "lucian+pcap_file_ex/corrupted.pcap": {"more": DAMAGED},
    "ntop+nDPI/6in4tunnel.pcap": {"fewer": QUOTED},
    "ntop+nDPI/fuzz-2006-06-26-2594.pcap": {
        "fewer": "an IP length that leaves 12 octets is no TCP header; tshark says TCP, malformed",
        "tcp.len": IP_LENGTH,
    },
    "pocc+tshark.dev/randpkt_all.pcap": {"tcp.hdr_len": HEADER_LENGTH},
    "seladb+PcapPlusPlus/frag_http_req.pcap": {"more": FRAGMENTS, "tcp.seq_raw": FRAGMENTS, "tcp.len": FRAGMENTS},
    "seladb+PcapPlusPlus/tcp-malformed.pcap": {"tcp.hdr_len": HEADER_LENGTH},
    "seladb+PcapPlusPlus/tcp-reassembly.pcap": {"fewer": "tshark counts headers that an sFlow datagram samples"},
    "the-tcpdump-group+tcpdump/bigtcp-ipv4-vxlan-ipv4.pcap": {
        "more": "tshark 4.0 does not take total length 0 for a packet above 64 KiB inside VXLAN"
    },
    "the-tcpdump-group+tcpdump/tcp-auth-heapoverflow.pcap": {
        "tcp.hdr_len": "options that the snap length cut do not count"
    },
    "zeek+zeek/ipv4__fragmented-4.pcap": {"more": FRAGMENTS, "tcp.seq_raw": FRAGMENTS, "tcp.len": FRAGMENTS},
    "zeek+zeek/tcp__reassembly.pcap": {"tcp.len": IP_LENGTH},
}


def ours(path: str) -> dict[int, tuple[int, ...]]:
    """Frame number -> the fields."""
    decoder, rows = Decoder(), dict[int, tuple[int, ...]]()
    with open_capture(path) as capture:
        for window in capture.windows():
            p = decoder.complete(dissect(window)).packets
            columns = (p.seq, p.ack, p.flags, p.window, p.payload_bytes, p.header_bytes)
            rows |= zip(p.number.tolist(), zip(*(c.tolist() for c in columns), strict=True), strict=True)
    return rows


def theirs(path: str) -> dict[int, tuple[int, ...]]:
    """The same from tshark; of several TCP headers in a frame the innermost."""
    command = ["tshark", "-r", path, "-Y", "tcp", "-T", "fields", "-E", "occurrence=l", "-e", "frame.number"]
    command += [x for field in FIELDS for x in ("-e", field)]
    out = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = [line.split("\t") for line in out.splitlines()]
    return {int(number): tuple(int(value or "0", 0) for value in values) for number, *values in lines}


@pytest.mark.slow
@needs_tshark
@needs_public_captures
def test_every_tcp_frame() -> None:
    compared, different = Counter[str](), defaultdict[str, set[str]](set)
    for row in public_truth():
        path = f"{public_captures()}/{row['path']}"
        try:
            mine = ours(path)
        except CaptureFileError:
            continue
        witness = theirs(path)
        found = different[row["path"]]
        found |= {"more"} if set(mine) - set(witness) else set()
        found |= {"fewer"} if set(witness) - set(mine) else set()
        for number in set(mine) & set(witness):
            for field, a, b in zip(FIELDS, mine[number], witness[number], strict=True):
                compared[field] += 1
                if a != b:
                    found.add(field)
    assert {path: found for path, found in different.items() if found} == {p: set(d) for p, d in DIFFERENCES.items()}
    assert compared["tcp.seq_raw"] > 30_000
