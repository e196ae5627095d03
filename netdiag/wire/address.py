"""Addresses: as 64-bit keys for grouping, and as text for people."""

from __future__ import annotations

import ipaddress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netdiag.wire.octets import BIG16, BIG32, OCTET, Octets
from netdiag.wire.tables import Buffer, Int64, UInt64

SOURCE, DESTINATION = 0, 1
HASHED = np.uint64(1 << 63)
"""Set in keys that are hashes (IPv6), so that they never equal an exact one (IPv4: address << 16 | port)."""


def endpoint_of(buffer: Buffer, network_offset: int, which: int) -> str:
    """The source (0) or destination (1) address of the IP header at ``network_offset``, IPv6 as RFC 5952 says."""
    if buffer[network_offset] >> 4 == 6:
        at = network_offset + 8 + 16 * which
        return ipaddress.IPv6Address(bytes(buffer[at : at + 16])).compressed
    at = network_offset + 12 + 4 * which
    return ".".join(map(str, bytes(buffer[at : at + 4])))


def endpoint_keys(octets: Octets, network: Int64, source_port: Int64, destination_port: Int64) -> tuple[UInt64, UInt64]:
    """Keys of both endpoints of each row, whose IP headers are at ``network``."""
    is_v6 = octets.rows(network, OCTET) >> 4 == 6
    if not is_v6.any():
        return _keys_v4(octets, network, 12, source_port), _keys_v4(octets, network, 16, destination_port)
    source, destination = np.empty(len(network), np.uint64), np.empty(len(network), np.uint64)
    for keys, port, at_v4, at_v6 in ((source, source_port, 12, 8), (destination, destination_port, 16, 24)):
        keys[~is_v6] = _keys_v4(octets, network[~is_v6], at_v4, port[~is_v6])
        keys[is_v6] = _keys_v6(octets, network[is_v6] + at_v6, port[is_v6])
    return source, destination


def _keys_v4(octets: Octets, network: Int64, at: int, port: Int64) -> UInt64:
    return (octets.rows(network + at, BIG32).astype(np.uint64) << np.uint64(16)) | port.astype(np.uint64)


def _keys_v6(octets: Octets, address: Int64, port: Int64) -> UInt64:
    half = np.dtype("<u8")
    first, second = octets.rows(address, half), octets.rows(address + 8, half)
    return hash_v6(first, second, port)


def hash_v6(first: UInt64, second: UInt64, port: NDArray[Any]) -> UInt64:
    """63 mixed bits of an IPv6 address (two halves) and a port. Equal keys must still be verified against the addresses."""
    return _mix(_mix(first) ^ second ^ (port.astype(np.uint64) << np.uint64(40))) | HASHED


def _mix(x: UInt64) -> UInt64:
    """A bijection of 64 bits that spreads every bit (multiply and xor-shift)."""
    x = x * np.uint64(0x9E3779B97F4A7C15)
    x = x ^ (x >> np.uint64(32))
    x = x * np.uint64(0xD6E8FEB86659FD93)
    return x ^ (x >> np.uint64(29))


def identification_and_hops(octets: Octets, network: Int64) -> tuple[Int64, Int64]:
    """IPv4 identification (NONE for IPv6), and time to live or hop limit."""
    is_v6 = octets.rows(network, OCTET) >> 4 == 6
    identification = np.where(is_v6, -1, octets.column(network + 4, BIG16))
    hops = octets.column(network + np.where(is_v6, 7, 8), OCTET)
    return identification, hops
