"""Connections as records: handshake, round trips, windows, options, close."""

from __future__ import annotations

from tests.support.conversation import CLIENT, MS, SERVER, Conversation


def test_a_whole_connection() -> None:
    talk = Conversation(step_ms=40).opens(rtt_ms=30)
    talk.client(b"request")
    talk.after(31).acks(SERVER)
    talk.after(100).server(b"response")
    talk.after(0.1).acks(CLIENT)
    talk.closes()
    wire = talk.wire()
    record = wire.connection()
    assert (str(record.client), str(record.server)) == ("10.0.0.1:40000", "10.0.0.2:443")
    assert (record.syn_packet, record.syn_ack_packet, record.ack_packet) == (1, 2, 3)
    assert (record.first_packet, record.last_packet) == (1, len(talk.frames))
    assert record.handshake_rtt_ns == 30 * MS
    assert record.server_rtt_ns == 30 * MS
    assert record.client_rtt_ns == 50_000
    assert record.min_rtt_ns == 30 * MS + 50_000
    assert (record.syn_retries, record.complete) == (0, True)
    assert (record.closed_by, record.close_reason) == ("client", "fin")
    assert record.closed_at == record.sides.client.fin_at
    client = record.sides.client
    assert (client.packets, client.payload_bytes) == (6, 7)
    assert (client.mss_bytes, client.window_scale, client.sack) == (1460, 7, True)
    assert (client.first_payload_packet, client.last_payload_packet) == (4, 4)
    assert record.sides.server.first_payload_packet == 6
