"""One kind of capture: a name, what it shows, and how its octets are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.support.packets import EPOCH_NS, TcpTalk, Timed, pcap


@dataclass(frozen=True, slots=True)
class Kind:
    """A capture of ``captures/kinds``."""

    file: str
    """Its name there."""
    shows: str
    make: Callable[[], bytes]
    drawn: bool = False
    """Made anew, its octets are others: keys are drawn at random, and compressors differ from version to version."""


def of_frames(file: str, shows: str, frames: Callable[[], Iterable[Timed]], *, drawn: bool = False) -> Kind:
    """A kind that is about what was said, in the simplest file: Ethernet frames with nanoseconds."""
    return Kind(f"{file}.pcap", shows, lambda: pcap(frames()), drawn)


RTT_NS, PAUSE_NS, AT_ONCE_NS = 20_000_000, 5_000_000, 50_000


def in_clear(
    *turns: tuple[int, bytes],
    ends: tuple[tuple[str, int], tuple[str, int]] = (("10.0.0.1", 40000), ("10.0.0.2", 80)),
    at_ns: int = EPOCH_NS,
    closed_by: int | None = 0,
    pause_ns: int = PAUSE_NS,
) -> list[Timed]:
    """One connection without TLS as captured at the client: what each side (0 client, 1 server) says in turn, and FINs.

    The round trip is 20 ms, the server takes ``pause_ns`` for whatever it says, the client no time.
    """
    talk = TcpTalk(client=ends[0], server=ends[1], at_ns=at_ns, step_ns=AT_ONCE_NS).handshake(rtt_ns=RTT_NS)
    heard = 0
    for side, data in turns:
        wait_ns = pause_ns + (RTT_NS if heard == 0 else 0) if side else AT_ONCE_NS
        talk.say(side, data, acked=side == 1, after_ns=wait_ns)
        heard = side
    if closed_by is not None:
        talk.finish(closed_by, after_ns=RTT_NS)
    return talk.frames
