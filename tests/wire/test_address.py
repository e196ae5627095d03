"""Keys and texts of addresses."""

from __future__ import annotations

import ipaddress
import random

import numpy as np
import pytest

from netdiag.wire.address import endpoint_keys, endpoint_of, hash_v6
from netdiag.wire.octets import Octets
from tests.support.packets import ipv4, ipv6


@pytest.mark.parametrize("address", ["0.0.0.0", "255.255.255.255", "192.0.2.7"])
def test_v4_text(address: str) -> None:
    packet = b"xx" + ipv4(b"", source=address, destination="10.0.0.1")
    assert endpoint_of(packet, 2, 0) == address
    assert endpoint_of(packet, 2, 1) == "10.0.0.1"


@pytest.mark.parametrize(
    ("address", "text"),
    [("::", "::"), ("::1", "::1"), ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"), ("fe80:0:0:0:0:0:0:9", "fe80::9")],
)
def test_v6_text_as_in_rfc_5952(address: str, text: str) -> None:
    packet = ipv6(b"", source="::2", destination=address)
    assert endpoint_of(memoryview(packet), 0, 1) == text


def test_v4_keys_are_exact_and_v6_keys_never_equal_them() -> None:
    packets = ipv4(b"", source="1.2.3.4", destination="255.0.0.1") + ipv6(b"")
    network, ports = np.array([0, 20]), np.array([65535, 65535])
    source, destination = endpoint_keys(Octets(packets), network, ports, ports - 1)
    assert source[0] == int(ipaddress.IPv4Address("1.2.3.4")) << 16 | 65535
    assert destination[0] == int(ipaddress.IPv4Address("255.0.0.1")) << 16 | 65534
    assert source[1] >> np.uint64(63) == destination[1] >> np.uint64(63) == 1


def test_v6_hashes_differ_by_address_and_port() -> None:
    generator = random.Random(1)
    first = np.array([generator.getrandbits(64) for _ in range(200)], np.uint64)
    halves = np.repeat(first, 500)
    second = np.tile(np.arange(500, dtype=np.uint64), 200)
    keys = hash_v6(halves, second, np.full(len(halves), 443))
    assert len(np.unique(keys)) == len(halves)
    ports = hash_v6(np.full(65536, 7, np.uint64), np.full(65536, 7, np.uint64), np.arange(65536))
    assert len(np.unique(ports)) == 65536
