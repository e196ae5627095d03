"""QUIC handshakes of every public capture against what tshark said: versions, names, ALPN, frames of the hellos."""

from __future__ import annotations

from typing import Any

import pytest

from netdiag.analysis.gather import gather
from netdiag.capture.source import open_capture
from netdiag.protocols.quic import QuicConnection, QuicDatagram, observe
from netdiag.records.endpoint import Endpoint
from netdiag.wire.address import endpoint_of
from tests.support.public_captures import epoch_ns, folder
from tests.support.tools import needs_public_captures, public_truth

CASES = [t for t in public_truth() if t["quic"]]


def connections(path: str) -> dict[tuple[str, int], QuicConnection]:
    """By the client's endpoint."""
    with open_capture(folder() / path) as capture:
        gathered = gather(capture.windows())
        table, buffer = gathered.datagrams, gathered.buffer
        datagrams = []
        for row in range(len(table)):
            start, network = int(table.payload_offset[row]), int(table.network_offset[row])
            datagrams.append(
                QuicDatagram(
                    bytes(buffer[start : start + int(table.captured_payload_bytes[row])]),
                    Endpoint(endpoint_of(buffer, network, 0), int(table.source_port[row])),
                    Endpoint(endpoint_of(buffer, network, 1), int(table.destination_port[row])),
                    int(table.captured_at[row]),
                    int(table.number[row]),
                )
            )
        return {(c.client.address, c.client.port): c for c in observe(datagrams)}


@needs_public_captures
@pytest.mark.parametrize("truth", CASES, ids=[t["path"] for t in CASES])
def test_handshakes(truth: dict[str, Any]) -> None:
    found = connections(truth["path"])
    compared = 0
    for row in truth["quic"]:
        ours = found[tuple(row["client"])]
        if "client_hello" not in row:
            continue
        session = ours.session()
        compared += 1
        assert (ours.server.address, ours.server.port) == tuple(row["server"])
        assert ours.version == int(row["version"], 16)
        assert (session.sni, session.alpn_offered) == (row.get("sni"), tuple(row["alpn_offered"]))
        assert session.client_hello_packet == row["client_hello"]["frame"]
        assert session.server_hello_packet == row.get("server_hello", {}).get("frame")
        assert session.client_hello_at is not None
        assert abs(session.client_hello_at - epoch_ns(truth) - round(row["first"]["t"] * 1e9)) < 1_000
        if "server_hello" in row:
            assert session.server_hello_at is not None
            assert abs(session.server_hello_at - epoch_ns(truth) - round(row["server_hello"]["t"] * 1e9)) < 1_000
    assert compared or truth["path"] == "arkime+arkime/arkime_synthetic.pcap"
