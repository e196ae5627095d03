"""What each packet was to its connection: the facts that segments and measurements share, found once."""

from __future__ import annotations

from netdiag.plain import plain
from netdiag.wire.acks import duplicate_acks, keep_alives, runs
from netdiag.wire.duplicates import Copies, captured_twice
from netdiag.wire.flows import Flows
from netdiag.wire.handshake import Handshake, handshake
from netdiag.wire.holes import Fills, find_holes
from netdiag.wire.kept import kept_by_argument
from netdiag.wire.packet_count import counting, steps
from netdiag.wire.resent import DEFAULT_RTT_NS, Resent, late_rows, resent
from netdiag.wire.rtt import half_loops, round_trips
from netdiag.wire.tables import Bool, Int64


@plain(frozen=True, slots=True, kw_only=True)
class Transmissions:
    """Masks have one entry per row of ``Flows.packets``."""

    copies: Bool
    """Captured before: says nothing about the network."""
    twice: Copies
    """The same with its counts."""
    keep_alives: Bool
    """Keep-alive probes, with one octet or none."""
    duplicate_acks: Bool
    fills: Fills
    """Holes, and what late packets brought into them."""
    identification_steps: Int64
    """``packet_count.steps`` of each row."""
    resent: Resent
    """Packets from before the edge, and why."""
    handshake: Handshake
    half_loops: Int64 | None
    """``rtt.half_loops``; None where no packet came late, so that nobody asked."""


@kept_by_argument
def transmissions(flows: Flows) -> Transmissions:
    """Everything in one go; found once for each ``flows``, which keep it."""
    sequence, direction = flows.sequence, flows.stream
    twice = captured_twice(flows.packets, sequence, direction, flows.starts, flows.buffer, flows.copied)
    copies = twice.rows
    opened = handshake(flows, copies)
    probes = keep_alives(flows)
    duplicates = duplicate_acks(flows, copies, probes)
    fills = find_holes(sequence, flows.starts, direction)
    moved = steps(flows, copies)
    late = late_rows(flows)
    halves = half_loops(flows, opened, late) if late.size else None
    return Transmissions(
        copies=copies,
        twice=twice,
        keep_alives=probes & ~copies,
        duplicate_acks=duplicates,
        fills=fills,
        identification_steps=moved,
        resent=resent(
            flows,
            late,
            fills,
            copies,
            probes,
            rtt_ns=opened.rtt_ns,
            least_rtt_ns=opened.rtt_ns if halves is None else round_trips(halves, DEFAULT_RTT_NS),
            duplicate_acks=runs(flows, duplicates),
            numbering=counting(flows, moved, straight=False),
        ),
        handshake=opened,
        half_loops=halves,
    )
