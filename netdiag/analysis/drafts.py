"""An exchange before it has an id: its turn, its milestones, how it ended. ``exchange`` makes the frozen record when somebody asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from netdiag.analysis.flow_control import StreamWindows, held_ns
from netdiag.analysis.held_up import HeldUp
from netdiag.analysis.marks import Mark, Marks, Milestone
from netdiag.analysis.phases import Breakdown, split
from netdiag.analysis.stalls import Surroundings
from netdiag.analysis.stream_timing import stream_timing
from netdiag.analysis.third_witness import server_report
from netdiag.protocols.turn import Turn, TurnEnd
from netdiag.records.connection import Connection
from netdiag.records.exchange import CONNECT, Exchange, InterimResponse, Outcome
from netdiag.records.timing import PhaseName


@dataclass(slots=True, kw_only=True)
class Draft:
    """Everything about one exchange but its id. ``marks`` is not empty."""

    connection: Connection | None
    marks: Marks
    turn: Turn | None = None
    ended: Mark | None = None
    """Where it stopped, for an exchange that did not run to the last octet of its answer."""
    ordinal: int = 0
    idle_before_ns: int | None = None
    outcome: Outcome = Outcome.UNKNOWN
    outcome_detail: str | None = None
    server_name: str | None = None
    opener: Draft | None = None
    """The exchange whose set-up this one waited for."""
    request_packet: int | None = None
    response_packet: int | None = None
    request_bytes: int | None = None
    response_bytes: int | None = None
    tried_at: int | None = None
    """When another address of the name was tried first (``pairing.Lookup``)."""
    windows: StreamWindows | None = None
    """HTTP/2 flow control; None without it, or where the connection's beginning was not captured."""
    held_up: HeldUp | None = None
    """None where there are no packets."""

    @property
    def started_at(self) -> int:
        """First thing done for this exchange."""
        return min(mark.at for mark in self.marks.values())

    def exchange(self, id: int, opener_id: int | None = None) -> Exchange:
        """The record under its id."""
        turn, held, windows = self.turn or NOTHING_READ, self.held_up, self.windows
        breakdown = split(self.marks, ended=self.ended, held_ns=0 if held is not None and held.never else None)
        if held is not None and not held.never:
            breakdown = breakdown._replace(phases=held.laid_over(breakdown.phases))
        path_ns, think_ns = self._wait_shares_ns(breakdown)
        interval = breakdown.started_at, breakdown.ended_at
        return Exchange(
            id=id,
            connection_id=None if self.connection is None else self.connection.id,
            ordinal=self.ordinal,
            reused=self.ordinal > 0,
            idle_before_ns=self.idle_before_ns,
            **said(turn),
            interim=tuple(
                InterimResponse(status=i.status, at=i.moment.deliverable_at, packet=i.moment.delivered_by)
                for i in turn.interim
            ),
            outcome=self.outcome,
            outcome_detail=self.outcome_detail,
            request_packet=self.request_packet,
            response_packet=self.response_packet,
            request_bytes=self.request_bytes,
            response_bytes=self.response_bytes,
            response_headers=turn.response_headers,
            **breakdown._asdict(),
            wait_path_ns=path_ns,
            wait_think_ns=think_ns,
            wait_think_lo_ns=self._least_think_ns(breakdown, think_ns),
            wait_loss_ns=self._wait_loss_ns(),
            answered_early=self._answered_early(),
            loss_ns=None if held is None else held.loss_ns(*interval),
            loss_hi_ns=None if held is None else held.loss_hi_ns(*interval),
            window_ns=None if held is None else held.window_ns(*interval),
            upload_window_ns=None if windows is None else held_ns(windows.uploads, *interval),
            download_window_ns=None if windows is None else held_ns(windows.downloads, *interval),
            server_name=self.server_name,
            fallback_ns=self._fallback_ns(),
            opener_id=opener_id,
            pushed=turn.pushed,
            stream=stream_timing(turn, self._around()),
            server_report=server_report(turn),
        )

    def _wait_shares_ns(self, breakdown: Breakdown) -> tuple[int | None, int | None]:
        if self._answered_early():
            return None, None
        pushed = self.turn is not None and self.turn.pushed
        return wait_shares_ns(breakdown, self.connection, lost_ns=self._wait_loss_ns() or 0, asked=not pushed)

    def _fallback_ns(self) -> int | None:
        syn = self.marks.get(Milestone.SYN)
        return None if syn is None or self.tried_at is None else syn.at - self.tried_at

    def _least_think_ns(self, breakdown: Breakdown, most_ns: int | None) -> int | None:
        """The server's host had all of the request when it acknowledged it; an answer that it sent after that took it so long at least."""
        asked, answered = self.marks.get(Milestone.REQUEST_LAST), self.marks.get(Milestone.RESPONSE_FIRST)
        wait = next((phase for phase in breakdown.phases if phase.name is PhaseName.WAIT), None)
        if asked is None or answered is None or self.held_up is None or wait is None or most_ns is None:
            return None
        receipt = self.held_up.acknowledged_at(asked.at)
        first = None if self.turn is None else self.turn.response_first
        if receipt is None:
            return None
        had_at, alone = receipt
        seen_at = answered.at if first is None else first.seen_at
        if had_at >= seen_at or not (alone or first is not None):  # it came with the answer, or may have
            return None
        lost_ns = wait.loss_ns if wait.loss_hi_ns is None else wait.loss_hi_ns
        return min(most_ns, max(0, seen_at - had_at - (lost_ns or 0)))

    def _answered_early(self) -> bool:
        """Whether the answer began before the request was complete. What a tunnel carries is no request that could be."""
        asked, answered = self.marks.get(Milestone.REQUEST_FIRST), self.marks.get(Milestone.RESPONSE_FIRST)
        if asked is None or answered is None or asked.at > answered.at:
            return False
        if self.turn is not None and (self.turn.end is TurnEnd.TUNNEL or self.turn.method == CONNECT):
            return False
        last = self.marks.get(Milestone.REQUEST_LAST)
        if last is not None:
            return last.at > answered.at
        # An end that the capture lacks may well have come before.
        return self.connection is not None and not self.connection.sides.client.missing_bytes

    def _wait_loss_ns(self) -> int | None:
        """How much longer loss made the wait: the server cannot have thought before the request was there for good, nor after the answer's
        beginning had left it. None without packets, and where the end of the request was not captured."""
        asked, answered = self.marks.get(Milestone.REQUEST_LAST), self.marks.get(Milestone.RESPONSE_FIRST)
        if self.held_up is None or asked is None:
            return None
        again_ns = self.held_up.asked_again_until(asked.at) - asked.at
        if answered is None:
            return again_ns if self.ended is None else max(0, min(again_ns, self.ended.at - asked.at))
        first = None if self.turn is None else self.turn.response_first
        late_ns = self.held_up.answer_delayed_ns(answered.at if first is None else first.seen_at, answered.at)
        rtt_ns = None if self.connection is None else path_rtt_ns(self.connection)
        if answered.at - asked.at - late_ns - again_ns < (rtt_ns or 0):  # too soon to be an answer to that transmission
            again_ns = 0
        return late_ns + again_ns

    def _around(self) -> Surroundings:
        rtt_ns = None if self.connection is None else path_rtt_ns(self.connection)
        closed = () if self.windows is None else self.windows.closed
        return Surroundings(rtt_ns=rtt_ns, held_up=self.held_up, closed_windows=closed)


NOTHING_READ = Turn(ordinal=0, protocol="")


def said(turn: Turn) -> dict[str, Any]:
    """The fields of an exchange's record that its turn has as they are."""
    return {
        "stream_id": turn.stream_id,
        "protocol": turn.protocol or None,
        "method": turn.method,
        "scheme": turn.scheme,
        "authority": turn.authority,
        "path": turn.path,
        "status": turn.status,
        "grpc_status": turn.grpc_status,
        "request_headers": turn.request_headers,
        "trailers": turn.trailers,
    }


def wait_shares_ns(
    breakdown: Breakdown, connection: Connection | None, *, lost_ns: int = 0, asked: bool = True
) -> tuple[int | None, int | None]:
    """(least part of the wait that the path needs, most that the server can have thought); None without a wait or a round-trip time.

    ``lost_ns`` of the wait, loss's doing, is neither's. A promise and what was promised both come from the server: where the client never
    ``asked``, the path has no part in the wait.
    """
    wait = next((p for p in breakdown.phases if p.name is PhaseName.WAIT), None)
    rtt_ns = None if connection is None else path_rtt_ns(connection)
    if wait is None or rtt_ns is None:
        return None, None
    rest_ns = max(0, wait.duration_ns - lost_ns)
    path_ns = min(rtt_ns, rest_ns) if asked else 0
    return path_ns, rest_ns - path_ns


def path_rtt_ns(connection: Connection) -> int | None:
    """Round trip between the capture point and the server: at the server's side the wait contains hardly any path."""
    if connection.server_rtt_ns is not None:
        return connection.server_rtt_ns
    return connection.handshake_rtt_ns if connection.handshake_rtt_ns is not None else connection.min_rtt_ns
