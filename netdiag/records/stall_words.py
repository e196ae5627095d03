"""A stall's cause in words, the same on the terminal and in pictures."""

from __future__ import annotations

from netdiag.records.stream import StallCause, StreamStall


def cause_word(stall: StreamStall) -> str:
    """``network``, ``server``, ``client``, ``cannot tell``."""
    return "cannot tell" if stall.cause is StallCause.UNDECIDED else str(stall.cause)


def reason(stall: StreamStall) -> str:
    """Why that one: ``later events are back on schedule (shift 3 %)``."""
    share = "" if stall.shift_share is None else f" (shift {stall.shift_share * 100:.0f} %)"
    match stall.method:
        case "hole":
            return "octets waited for a lost segment"
        case "packet-count":
            return "a packet left the server and never came"
        case "window":
            return "its receive window was closed"
        case "flow-control":
            return "it had closed its HTTP/2 window"
        case "read-lag":
            return "the octets were here and were not read"
        case "signs-of-life":
            return f"{stall.signs_of_life} ping{'s' if stall.signs_of_life != 1 else ''} arrived meanwhile"
        case "none":
            return "too few events follow"
    return _BY_CONSERVATION[stall.cause] + share


_BY_CONSERVATION = {
    StallCause.NETWORK: "later events are back on schedule",
    StallCause.SERVER: "all later events are late, too",
    StallCause.CLIENT: "it read late",
    StallCause.UNDECIDED: "later events are between both schedules",
}
