"""Connections as records: handshake, round trips, windows, options, close."""

from __future__ import annotations

import pytest

from netdiag.wire.stalls import StallKind
from tests.support.conversation import CLIENT, MS, SERVER, SYN_OPTIONS, Conversation, filled_window
from tests.support.packets import ACK, FIN, RST, SYN


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


def test_the_answered_syn_gives_the_round_trip() -> None:
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN, options=SYN_OPTIONS)
    talk.after(1000)
    talk.opens(rtt_ms=25)
    record = talk.wire().connection()
    assert record.syn_retries == 1
    assert record.handshake_rtt_ns == 25 * MS
    assert record.syn_packet == 1
    assert record.sides.client.retransmitted_segments == 1


def rewritten(*, answered: bool) -> Conversation:
    """A handshake whose last packet acknowledges another number than the SYN-ACK's, as behind a firewall that rewrites one direction."""
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN)
    talk.packet(SERVER, flags=SYN | ACK, ack=1)
    talk.packet(CLIENT, offset=1, ack=-40_000)
    talk.packet(CLIENT, b"request", offset=1, ack=-40_000)
    if answered:
        talk.packet(SERVER, b"response", offset=1, ack=8)
    return talk


def test_the_first_ack_completes_the_handshake_whatever_its_number_when_the_server_went_on() -> None:
    assert rewritten(answered=True).wire().connection().ack_packet == 3
    assert rewritten(answered=False).wire().connection().ack_packet is None


def test_a_syn_with_other_flags_is_a_syn_unless_it_resets() -> None:
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN | RST)
    talk.packet(CLIENT, flags=SYN | FIN)
    assert talk.wire().connection().syn_packet == 2


def test_a_connection_that_the_capture_joined_late_has_no_handshake() -> None:
    talk = Conversation()
    talk.client(b"GET / HTTP/1.1\r\n")
    talk.after(40).server(b"HTTP/1.1 200 OK\r\n")
    record = talk.wire().connection()
    assert (record.syn_at, record.syn_ack_at, record.ack_at, record.handshake_rtt_ns) == (None, None, None, None)
    assert record.sides.client.mss_bytes is None
    assert record.sides.client.sack is None
    assert record.complete is False


def test_refused() -> None:
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN)
    talk.packet(SERVER, flags=RST | ACK, offset=-1, ack=-1)
    record = talk.wire().connection()
    assert (record.close_reason, record.closed_by) == ("refused", "server")
    assert record.sides.server.rst_packet == 2


def test_nobody_answered() -> None:
    talk = Conversation()
    for wait_ms in (0, 1000, 2000):
        talk.after(wait_ms).packet(CLIENT, flags=SYN)
    record = talk.wire().connection()
    assert (record.close_reason, record.closed_by, record.closed_at) == ("syn-timeout", None, None)
    assert record.syn_retries == 2


def test_half_open_at_the_end_of_the_capture_is_open() -> None:
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN)
    record = talk.wire().connection()
    assert (record.close_reason, record.syn_ack_at) == (None, None)


def test_reset_by_the_server() -> None:
    talk = Conversation().opens()
    talk.client(b"request")
    talk.resets(SERVER)
    record = talk.wire().connection()
    assert (record.close_reason, record.closed_by) == ("reset", "server")
    assert record.complete


def test_karn_a_retransmitted_range_gives_no_sample() -> None:
    talk = Conversation().opens(rtt_ms=20)
    request = talk.client(b"request")
    talk.after(230).again(request)
    talk.after(3).acks(SERVER)
    assert talk.wire().connection().server_rtt_ns == 20 * MS


def test_an_acknowledgement_that_waited_for_the_application_gives_no_sample() -> None:
    talk = Conversation()
    talk.client(b"GET / HTTP/1.1\r\n")
    talk.after(300).server(b"HTTP/1.1 200 OK\r\n")
    assert talk.wire().connection().server_rtt_ns is None


def test_prompt_acknowledgements_give_samples_without_handshake() -> None:
    talk = Conversation()
    talk.client(b"GET / HTTP/1.1\r\n")
    talk.after(33).acks(SERVER)
    assert talk.wire().connection().min_rtt_ns == 33 * MS


@pytest.mark.parametrize("ends", [True, False])
def test_zero_window(ends: bool) -> None:
    talk = Conversation().opens()
    talk.server(b"x" * 1000)
    talk.window[CLIENT] = 0
    talk.acks(CLIENT)
    talk.after(200).packet(SERVER, offset=999)
    talk.after(0.2).acks(CLIENT)
    talk.window[CLIENT] = 512
    if ends:
        talk.after(300).acks(CLIENT)
    else:
        talk.after(300).packet(SERVER, offset=999)
    wire = talk.wire()
    side = wire.connection().sides.client
    assert side.zero_windows == 2
    assert side.zero_window_ns == int(500.2 * MS)
    stalls = wire.table.stalls
    assert stalls.kind.tolist() == [StallKind.ZERO_WINDOW]
    assert stalls.last_packet.tolist() == [8 if ends else -1]


def test_a_filled_window_counts_until_it_opens() -> None:
    wire = filled_window().wire()
    assert wire.connection().sides.server.window_full_ns == 40 * MS
    assert wire.connection().sides.client.zero_windows == 0


def test_windows_without_scaling_in_both_syns_are_not_scaled() -> None:
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN, options=SYN_OPTIONS)
    talk.packet(SERVER, flags=SYN | ACK, options=b"\x02\x04\x05\xb4")
    talk.packet(CLIENT)
    talk.window[CLIENT] = 1280
    talk.acks(CLIENT)
    talk.server(b"x" * 1280)
    talk.after(40).acks(CLIENT)
    wire = talk.wire()
    assert wire.connection().sides.server.window_full_ns == 40 * MS
    assert wire.connection().sides.server.window_scale is None


def test_unknown_scaling_means_unknown_window() -> None:
    talk = Conversation()
    talk.window[CLIENT] = 10
    talk.acks(CLIENT)
    talk.server(b"x" * 10)
    talk.after(40).acks(CLIENT)
    assert talk.wire().connection().sides.server.window_full_ns == 0


def test_a_malformed_option_list_ends_where_it_makes_no_sense() -> None:
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN, options=b"\x02\x04\x05\xb4\x03\x00\x02\x04")
    record = talk.wire().connection()
    assert (record.sides.client.mss_bytes, record.sides.client.window_scale) == (1460, None)


def test_octets_lost_by_the_capture_at_the_end_of_a_direction() -> None:
    talk = Conversation().opens()
    talk.server(b"x" * 100)
    talk.server(b"y" * 50, captured=False)
    talk.acks_everything(CLIENT)
    record = talk.wire().connection()
    assert record.sides.server.missing_bytes == 50


def test_a_fin_that_was_not_captured_is_no_missing_octet() -> None:
    talk = Conversation().opens()
    talk.server(b"x" * 100)
    talk.say(SERVER, b"", flags=17, captured=False)
    talk.acks_everything(CLIENT)
    assert talk.wire().connection().sides.server.missing_bytes == 0


def test_a_capture_of_one_direction_counts_the_other_as_missing() -> None:
    talk = Conversation()
    talk.client(b"GET / HTTP/1.1\r\n")
    talk.server(b"x" * 5000, captured=False)
    talk.acks_everything(CLIENT)
    record = talk.wire().connection()
    assert record.sides.server.packets == 0
    assert record.sides.server.missing_bytes == 5000


def test_times_of_an_ack_before_its_data_give_no_negative_sample() -> None:
    talk = Conversation().opens(rtt_ms=20)
    talk.server(b"x" * 100, captured=False)
    talk.acks_everything(CLIENT)
    talk.after(0.01).packet(SERVER, b"x" * 100, offset=0)
    record = talk.wire().connection()
    assert record.client_rtt_ns == 50_000
    assert record.sides.server.missing_bytes == 0


def test_octets_lost_beyond_the_capture_point_are_counted_from_their_first_transmission() -> None:
    talk = Conversation().opens(rtt_ms=20)
    talk.client(b"a" * 1000)
    request = talk.client(b"b" * 1000)
    talk.client(b"c" * 1000)
    talk.after(250).again(request)
    talk.after(20).acks(SERVER)
    wire = talk.wire()
    client = wire.connection().sides.client
    assert (client.loss_beyond_ns, client.loss_ns) == (251 * MS, 0)
    chosen = wire.table.stalls.kind == StallKind.LOSS_BEYOND
    assert wire.table.stalls.first_packet[chosen].tolist() == [5]
    assert wire.table.stalls.last_packet[chosen].tolist() == [7]


def test_needless_retransmissions_cost_nothing() -> None:
    talk = Conversation().opens(rtt_ms=20)
    request = talk.client(b"a" * 1000)
    talk.after(20).acks(SERVER)
    talk.after(250).again(request)
    assert talk.wire().connection().sides.client.loss_beyond_ns == 0


def test_a_reset_by_somebody_else_shows_in_the_hop_limit() -> None:
    talk = Conversation().opens()
    talk.resets(SERVER)
    at, frame = talk.frames[-1]
    talk.frames[-1] = (at, frame[:22] + bytes([200]) + frame[23:])
    server = talk.wire().connection().sides.server
    assert (server.hop_limit, server.rst_hop_limit) == (64, 200)
