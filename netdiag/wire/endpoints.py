"""Addresses and ports of connections, read from their packets only when asked for."""

from __future__ import annotations

import numpy as np

from netdiag.plain import plain
from netdiag.wire.address import DESTINATION, SOURCE, endpoint_of
from netdiag.wire.flows import Flows
from netdiag.wire.options import shows_tcp_header
from netdiag.wire.tables import Buffer, Int64, UInt8


@plain(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Of each connection: one packet that shows both endpoints."""

    network_offset: Int64
    tcp_offset: Int64
    side: UInt8
    """Who sent that packet."""
    buffer: Buffer

    def of(self, i: int) -> tuple[tuple[str, int], tuple[str, int]]:
        """(address, port) of the client and of the server of connection ``i``."""
        network, transport = int(self.network_offset[i]), int(self.tcp_offset[i])
        ports = bytes(self.buffer[transport : transport + 4])
        source = endpoint_of(self.buffer, network, SOURCE), int.from_bytes(ports[:2], "big")
        destination = endpoint_of(self.buffer, network, DESTINATION), int.from_bytes(ports[2:], "big")
        return (source, destination) if self.side[i] == 0 else (destination, source)

    def server_port(self, i: int) -> int:
        """Port of the server of connection ``i``."""
        at = int(self.tcp_offset[i]) + (2 if self.side[i] == 0 else 0)
        return int.from_bytes(bytes(self.buffer[at : at + 2]), "big")


def endpoints(flows: Flows, buffer: Buffer) -> Endpoints:
    """A packet with a TCP header of each connection (later IP fragments have none)."""
    packets, rows = flows.packets, flows.starts[0:-1:2].copy()
    hidden = np.flatnonzero(~shows_tcp_header(packets, rows))
    for connection in hidden.tolist():
        own = np.arange(flows.starts[2 * connection], flows.starts[2 * connection + 2])
        shown = own[shows_tcp_header(packets, own)]
        rows[connection] = shown[0] if shown.size else own[0]
    return Endpoints(
        network_offset=packets.network_offset[rows],
        tcp_offset=packets.payload_offset[rows] - packets.header_bytes[rows].astype(np.int64),
        side=flows.side[rows],
        buffer=buffer,
    )
