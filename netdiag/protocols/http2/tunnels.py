"""Streams that carry another conversation: CONNECT (RFC 9113 section 8.5), and whatever an extended CONNECT names (RFC 8441)."""

from __future__ import annotations

from netdiag.protocols.anomalies import AnomalyLog
from netdiag.protocols.conversation import CLIENT, SERVER, Tunnel
from netdiag.protocols.turn import Turn, TurnEnd
from netdiag.records.exchange import CONNECT
from netdiag.wire.chunk import Chunk, Moment

MOST_BYTES = 64 << 20
"""Of all tunnels of one connection: streams are interleaved, so that the octets of each have to be kept until all were read."""


def consents(turn: Turn) -> bool:
    """Whether the answer makes the stream a tunnel."""
    return turn.method == CONNECT and 200 <= (turn.status or 0) < 300


class Pipe:
    """One direction's octets, DATA frame by DATA frame."""

    __slots__ = ("_missing", "_offset", "_unknown", "chunks")

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self._offset = 0
        self._missing = 0
        self._unknown = False

    def add(self, octets: bytes, moment: Moment) -> None:
        """What arrived at one moment."""
        missing = -1 if self._unknown else self._missing
        begin = self._offset + self._missing
        self._missing, self._unknown, self._offset = 0, False, begin + len(octets)
        seen_at, ready_at = moment.seen_at, moment.deliverable_at
        self.chunks.append(
            Chunk(octets, begin, seen_at, seen_at, ready_at, moment.packet, moment.delivered_by, missing)
        )

    def lose(self, size: int | None) -> None:
        """Octets that the capture lacks; None when nobody knows how many."""
        if size is None:
            self._unknown = True
        else:
            self._missing += size


class StreamTunnel:
    """What one CONNECT asks for. The octets of DATA are kept where another conversation that can be read may be in them."""

    __slots__ = ("_pipes", "kind", "opened", "turn")

    def __init__(self, turn: Turn, protocol: str | None) -> None:
        self.turn = turn
        self.kind = "connect" if protocol is None else protocol
        self.opened = False
        """The proxy (or server) agreed."""
        self._pipes = (Pipe(), Pipe()) if protocol is None else None

    def open(self) -> None:
        """The set-up is over with the answer's head: what follows is neither content of the request nor of the answer."""
        turn = self.turn
        self.opened = True
        turn.request_last = turn.request_head_last
        turn.response_last = turn.response_head_last
        turn.end = TurnEnd.TUNNEL

    def pipe(self, side: int) -> Pipe | None:
        """Where one side's octets go; None where nobody wants them."""
        return None if self._pipes is None else self._pipes[side]

    def told(self) -> Tunnel:
        """For whoever reads on inside."""
        client, server = ([], []) if self._pipes is None else (self._pipes[CLIENT].chunks, self._pipes[SERVER].chunks)
        return Tunnel(kind=self.kind, turn=self.turn, client=client, server=server, target=self.turn.authority)


class Tunnels:
    """All of one connection, in the order of their requests."""

    def __init__(self, log: AnomalyLog) -> None:
        self._log = log
        self._asked: list[StreamTunnel] = []
        self._kept = 0

    def ask(self, turn: Turn, protocol: str | None) -> StreamTunnel:
        """A CONNECT request."""
        tunnel = StreamTunnel(turn, protocol)
        self._asked.append(tunnel)
        return tunnel

    def carry(self, pipe: Pipe, octets: bytes, moment: Moment) -> None:
        """Octets of DATA, as long as there is room."""
        before, self._kept = self._kept, self._kept + len(octets)
        if self._kept <= MOST_BYTES:
            pipe.add(octets, moment)
        elif before <= MOST_BYTES:
            self._log.add(f"tunnels carry more than {MOST_BYTES >> 20} MiB; the rest is not read", packet=moment.packet)

    def lost(self, side: int) -> None:
        """Frames of one side were missed: any tunnel may lack octets."""
        for tunnel in self._asked:
            pipe = tunnel.pipe(side)
            if pipe is not None:
                pipe.lose(None)

    def opened(self) -> list[Tunnel]:
        """Those that came about; what can be read inside comes first."""
        told = [tunnel.told() for tunnel in self._asked if tunnel.opened]
        return sorted(told, key=lambda tunnel: tunnel.kind != "connect")
