"""The kernel's own view of one TCP connection."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpInfo:
    """``TCP_INFO`` (linux/tcp.h) read just before the close or after a request; a field that this kernel lacks is None."""

    rtt_ns: int | None = None
    min_rtt_ns: int | None = None
    total_retransmissions: int | None = None
    received_out_of_order: int | None = None
    delivery_rate_bytes_per_s: int | None = None
    busy_ns: int | None = None
    receive_window_limited_ns: int | None = None
    send_buffer_limited_ns: int | None = None
    snd_mss_bytes: int | None = None
    congestion_control: str | None = None
