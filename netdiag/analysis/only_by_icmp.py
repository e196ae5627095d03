"""TCP connections of which the capture has no packet but those that ICMP errors quote: somebody tried, and the network said no."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from netdiag.analysis.unreachable import MOST_ERRORS, TCP, ends_an_attempt
from netdiag.records.connection import Connection, Side, Sides
from netdiag.records.endpoint import Endpoint
from netdiag.wire.address import endpoint_of
from netdiag.wire.connections import Grouped
from netdiag.wire.icmp import IcmpError
from netdiag.wire.tables import Buffer

Pair = tuple[int, int]
"""Keys of both endpoints."""


class OnlyByIcmp:
    """Endpoint pairs that errors are about, less those that have packets of their own."""

    def __init__(self, errors: Iterable[IcmpError]) -> None:
        self._about: dict[Pair, list[IcmpError]] = {}
        for error in errors:
            if error.protocol == TCP and (len(self._about) < MOST_ERRORS or (error.low, error.high) in self._about):
                self._about.setdefault((error.low, error.high), []).append(error)

    def saw(self, grouped: Grouped) -> None:
        """These connections have packets."""
        if not self._about or not len(grouped):
            return
        rows = grouped.order[grouped.starts[:-1]]
        low, high = grouped.packets.low[rows], grouped.packets.high[rows]
        wanted = np.isin(low, np.array([pair[0] for pair in self._about], np.uint64))
        for pair in zip(low[wanted].tolist(), high[wanted].tolist(), strict=True):
            self._about.pop(pair, None)

    def connections(self, buffer: Buffer, *, first_id: int) -> list[Connection]:
        """One for each pair that is left, in the order of the errors."""
        return [_connection(errors, buffer, first_id + i) for i, errors in enumerate(self._about.values())]


def _connection(errors: list[IcmpError], buffer: Buffer, id: int) -> Connection:
    first, last = errors[0], errors[-1]
    final = next((error for error in errors if ends_an_attempt(error)), None)
    sender = Endpoint(endpoint_of(buffer, first.inner_network_offset, 0), first.source_port)
    other = Endpoint(endpoint_of(buffer, first.inner_network_offset, 1), first.destination_port)
    client, server = (other, sender) if sender.port < other.port else (sender, other)
    return Connection(
        id=id,
        transport="tcp",
        client=client,
        server=server,
        client_known_by="port" if sender.port != other.port else "first-packet",
        first_at=first.captured_at,
        last_at=last.captured_at,
        first_packet=first.packet,
        last_packet=last.packet,
        close_reason=None if final is None else "unreachable",
        closed_at=None if final is None else final.captured_at,
        sides=Sides(client=Side(packets=0, payload_bytes=0), server=Side(packets=0, payload_bytes=0)),
    )
