"""All public captures: the number of packets, and which of them are TCP between whom, as tshark says.

A difference is either here, with its reason, or a failure.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from netdiag.capture.source import open_capture
from netdiag.wire.address import endpoint_of, hash_v6
from netdiag.wire.decode import Decoder
from netdiag.wire.tables import Packets
from tests.support.tools import needs_public_captures, public_captures, public_truth

Endpoint = tuple[str, int]
Pair = frozenset[Endpoint]

PACKET_COUNT_DIFFERS = {
    "lucian+pcap_file_ex/corrupted.pcap": "tshark stops at the damaged record header; reading goes on behind it",
}

PAIRS_DIFFER = {
    "OISF+suricata-verify/bug-6875-01__fuzz.pcap": "tshark takes the damaged file for another variant of pcap",
    "lucian+pcap_file_ex/corrupted.pcap": "more packets are read",
    "ntop+nDPI/6in4tunnel.pcap": "tshark counts the packet that an ICMPv6 error quotes as one of a TCP stream",
    "seladb+PcapPlusPlus/tcp-reassembly.pcap": "tshark counts a header that an sFlow datagram samples as a TCP stream",
    "the-tcpdump-group+tcpdump/bigtcp-ipv4-vxlan-ipv4.pcap": "tshark 4.0 does not take total length 0 for a packet above 64 KiB inside VXLAN",
}

FRAMES_DIFFER = PAIRS_DIFFER | {
    "OISF+suricata-verify/defrag__bug-6887-defrag-eth-vlan-ipv6-tcp__frag-eth-vlan-ipv6-tcp.pcap": "a row per IP fragment; tshark: one for the packet",
    "seladb+PcapPlusPlus/frag_http_req.pcap": "a row per IP fragment; tshark: one for the packet",
    "zeek+zeek/ipv4__fragmented-4.pcap": "a row per IP fragment; tshark: one for the packet",
}


def rows() -> list[Any]:
    return [pytest.param(row, id=row["path"]) for row in public_truth()] or [
        pytest.param(None, id="no public captures")
    ]


def endpoint(said: list[Any]) -> Endpoint:
    return str(ipaddress.ip_address(said[0].split("%")[0])), int(said[1])


def frames_by_pair(packets: Packets, buffer: Any, known: dict[int, Endpoint]) -> Counter[Pair]:
    out: Counter[Pair] = Counter()
    keys = np.stack([packets.low, packets.high, packets.network_offset.astype(np.uint64)], axis=1)
    for low, high, network in keys.tolist():
        addresses = {endpoint_of(buffer, network, 0), endpoint_of(buffer, network, 1)}
        pair = frozenset((of_key(low, known), of_key(high, known)))
        assert {address for address, _ in pair} == addresses, "the row's IP header has other addresses than its keys"
        out[pair] += 1
    return out


def of_key(key: int, known: dict[int, Endpoint]) -> Endpoint:
    """IPv4 keys are exact; IPv6 ones are hashes, looked up among what tshark saw."""
    if key >> 63:
        return known.get(key, ("unknown", key))
    return str(ipaddress.IPv4Address(key >> 16)), key & 0xFFFF


def v6_key(end: Endpoint) -> int:
    packed = ipaddress.IPv6Address(end[0]).packed
    first, second = np.frombuffer(packed[:8], "<u8"), np.frombuffer(packed[8:], "<u8")
    return int(hash_v6(first, second, np.array([end[1]]))[0])


@needs_public_captures
@pytest.mark.parametrize("row", rows())
def test_packets_and_tcp_frames(row: dict[str, Any]) -> None:
    path = row["path"]
    expected: Counter[Pair] = Counter()
    for stream in row["streams"]:
        expected[frozenset((endpoint(stream["client"]), endpoint(stream["server"])))] += stream["frames"]
    known = {v6_key(end): end for pair in expected for end in pair if ":" in end[0]}
    decoder, found, packets = Decoder(), Counter[Pair](), 0
    with open_capture(str(public_captures() or Path()) + "/" + path) as capture:
        for window in capture.windows():
            decoded = decoder.decode(window)
            packets += len(window.packets)
            found += frames_by_pair(decoded.packets, window.buffer, known)
    assert (packets == row["packets"]) is (path not in PACKET_COUNT_DIFFERS)
    assert (set(found) == set(expected)) is (path not in PAIRS_DIFFER)
    assert (found == expected) is (path not in FRAMES_DIFFER)
