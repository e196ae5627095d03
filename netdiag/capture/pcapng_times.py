"""Ticks of pcapng interfaces to nanoseconds since the epoch, in integers."""

from __future__ import annotations

import numpy as np

from netdiag.capture.facts import FileFacts
from netdiag.wire.distinct import distinct
from netdiag.wire.tables import NONE, Bool, Int64, Interface, UInt64

NANO = 1_000_000_000
LATEST = 2**63 - 1


def nanoseconds(ticks: UInt64, interface: Int64, timed: Bool, facts: FileFacts) -> Int64:
    """Instants of packets; NONE where there is no time stamp, no interface, or a time beyond the year 2262."""
    out = np.full(len(ticks), NONE, np.int64)
    usable = timed & (interface != NONE)
    if usable.all() and (interface == interface[:1]).all() and len(ticks):
        out = interface_nanoseconds(ticks, facts.interfaces[int(interface[0])])
    else:
        for number in distinct(interface[usable]).tolist():
            rows = usable & (interface == number)
            out[rows] = interface_nanoseconds(ticks[rows], facts.interfaces[number])
    if (out[usable] == NONE).any():
        facts.anomaly(f"{int((out[usable] == NONE).sum())} time stamps are beyond the year 2262")
    return out


def interface_nanoseconds(ticks: UInt64, interface: Interface) -> Int64:
    """``if_tsresol`` and ``if_tsoffset`` applied; rounded down to whole nanoseconds; NONE where the result does not fit."""
    rate = interface.ticks_per_second
    if NANO % rate == 0 and not interface.offset_s and (not len(ticks) or int(ticks.max()) <= LATEST // (NANO // rate)):
        return ticks.astype(np.int64) * (NANO // rate)
    # Exact Python integers for what numpy cannot: resolutions finer than 2^-63 or 10^-18.
    if rate > 1 << 63:
        exact = [int(t) * NANO // rate for t in ticks.tolist()]
        since_offset, seconds_fit = np.array(exact, np.int64), np.ones(len(ticks), np.bool_)
    else:
        seconds, rest = np.divmod(ticks, np.uint64(rate))
        seconds_fit = seconds < np.uint64(LATEST // NANO)
        since_offset = np.where(seconds_fit, seconds, 0).astype(np.int64) * NANO + _fraction(rest, rate)
    shift = interface.offset_s * NANO
    if abs(shift) > LATEST:
        return np.full(len(ticks), NONE, np.int64)
    fits = seconds_fit & (since_offset <= LATEST - max(shift, 0))
    return np.where(fits, since_offset + np.int64(shift), NONE)


def _fraction(rest: UInt64, rate: int) -> Int64:
    """Nanoseconds of ``rest`` ticks, less than a second."""
    if NANO % rate == 0:
        return (rest * np.uint64(NANO // rate)).astype(np.int64)
    if rate % NANO == 0:
        return (rest // np.uint64(rate // NANO)).astype(np.int64)
    if rate < 1 << 34:  # rest * 10^9 stays below 2^64
        return (rest * np.uint64(NANO) // np.uint64(rate)).astype(np.int64)
    return np.array([int(r) * NANO // rate for r in rest.tolist()], np.int64)
