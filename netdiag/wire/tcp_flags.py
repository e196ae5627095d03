"""Control bits of a TCP header (RFC 9293 section 3.1)."""

from __future__ import annotations

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
