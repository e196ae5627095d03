"""The link: one process that forwards frames between two interfaces as a ``Path`` says, and logs what it did with each.

``python -m netdiag.lab.emulator PATH.json LOG LEFT RIGHT`` inside the link's namespace: prints ``ready``, forwards until SIGTERM, then
writes the log. Frames leave at their kernel arrival stamp plus the delay; the loop wakes 150 µs early and spins the rest, which holds about
99 % of packets within 0.2 ms of their time.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import heapq
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from array import array
from dataclasses import dataclass
from itertools import count
from pathlib import Path as FilePath
from types import FrameType

from netdiag.lab.frames import FrameFacts
from netdiag.lab.path import ACTIONS, PACKET_KINDS, DirectionModel, Path

_SOL_PACKET, _PACKET_QDISC_BYPASS, _PACKET_IGNORE_OUTGOING = 263, 20, 23
_SO_TIMESTAMPNS, _SO_RCVBUFFORCE = 35, 33
_PR_SET_TIMERSLACK = 29
_ETH_P_ALL = 0x0003
_SPIN_NS = 150_000
_RECEIVE_BUFFER_BYTES = 16 << 20
_MOST_ROWS = 2_000_000
_COLUMNS = 10
_INSTANTS = (1, 2, 3)
_KINDS = (*PACKET_KINDS, "dns", "other")
_DNS_PORT = 53
_TIMESPEC = struct.Struct("@ll")


@dataclass(frozen=True, slots=True)
class LinkRow:
    """What the link did with one frame. ``left_at`` is None for a dropped one; its lateness is left − due."""

    direction: str
    """``up`` or ``down``."""
    arrived_at: int
    left_at: int | None
    due_at: int | None
    size_bytes: int
    action: str
    """As in ``path.Decision``."""
    kind: str = "other"
    """``syn``, ``syn-ack``, ``data``, ``ack``, ``fin``, ``rst``, ``dns``, ``udp`` or ``other``: of the frame that arrived."""
    client_port: int = 0
    """The port on the client's side."""
    seq: int = 0
    """TCP sequence number of its first octet."""
    payload_bytes: int = 0


class Port:
    """One interface as a raw socket that never sees its own frames again."""

    def __init__(self, interface: str) -> None:
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        raw.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        raw.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        with contextlib.suppress(OSError):
            raw.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
        try:
            raw.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER_BYTES)
        except OSError:  # not root
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        raw.bind((interface, _ETH_P_ALL))
        raw.setblocking(False)
        self.socket = raw

    def receive(self, wall_to_monotonic_ns: int) -> tuple[int, bytes] | None:
        """One frame and its kernel arrival stamp on the monotonic clock; None when there is no more."""
        try:
            frame, ancillary, _, _ = self.socket.recvmsg(65_600, 64)
        except BlockingIOError:
            return None
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
                seconds, nanoseconds = _TIMESPEC.unpack(data[: _TIMESPEC.size])
                return seconds * 1_000_000_000 + nanoseconds + wall_to_monotonic_ns, frame
        return time.monotonic_ns(), frame

    def send(self, frame: bytes) -> None:
        """A frame that cannot leave now (queue full, oversized) is lost, as on a real link."""
        with contextlib.suppress(OSError):
            self.socket.send(frame)


class Emulator:
    """The loop. ``stop`` may be called from a signal handler."""

    def __init__(self, left: Port, right: Port, path: Path) -> None:
        self._ends = (
            (left, right, DirectionModel(path.up, path.seed)),
            (right, left, DirectionModel(path.down, path.seed + 1)),
        )
        self._heap: list[tuple[int, int, int, int, bytes, int, FrameFacts]] = []
        self._order = count()
        self._stopped = False
        self._log = array("q")

    def stop(self, *_: object) -> None:
        """End ``run`` soon; also a signal handler."""
        self._stopped = True

    def run(self) -> None:
        """Forward until ``stop``."""
        poll = [left.socket for left, _, _ in self._ends]
        while not self._stopped:
            self._release_due()
            timeout = max(0, self._heap[0][0] - time.monotonic_ns() - _SPIN_NS) / 1e9 if self._heap else 0.2
            for ready in select.select(poll, [], [], timeout)[0]:
                self._accept(poll.index(ready))

    def _accept(self, direction: int) -> None:
        source, _, model = self._ends[direction]
        offset = time.monotonic_ns() - time.time_ns()
        for _ in range(64):  # bounded, so that due frames are not held up by a burst
            received = source.receive(offset)
            if received is None:
                return
            at, frame = received
            facts = FrameFacts.of(frame)
            decision = model.decide(at, frame, facts)
            action = ACTIONS.index(decision.action)
            if not decision.releases:
                self._note(direction, at, -1, -1, len(frame), action, facts)
            for release in decision.releases:
                heapq.heappush(self._heap, (release.at, next(self._order), direction, at, release.frame, action, facts))

    def _release_due(self) -> None:
        heap = self._heap
        while heap and heap[0][0] <= time.monotonic_ns():
            due, _, direction, at, frame, action, facts = heapq.heappop(heap)
            self._ends[direction][1].send(frame)
            self._note(direction, at, time.monotonic_ns(), due, len(frame), action, facts)

    def _note(self, direction: int, at: int, left: int, due: int, size: int, action: int, facts: FrameFacts) -> None:
        if len(self._log) < _MOST_ROWS * _COLUMNS:
            what = (_KINDS.index(_kind(facts)), facts.ports[direction], facts.seq, facts.payload_bytes)
            self._log.extend((direction, at, left, due, size, action, *what))

    def write_log(self, file: FilePath) -> None:
        """Instants as wall-clock nanoseconds, ten 64-bit integers a row."""
        offset = time.time_ns() - time.monotonic_ns()
        for i in range(0, len(self._log), _COLUMNS):
            for j in _INSTANTS:
                if self._log[i + j] >= 0:
                    self._log[i + j] += offset
        file.write_bytes(self._log.tobytes())


def _kind(facts: FrameFacts) -> str:
    return "dns" if facts.kind == "udp" and _DNS_PORT in facts.ports else facts.kind


def read_log(file: FilePath) -> list[LinkRow]:
    """The rows that ``Emulator.write_log`` wrote, in the order of events."""
    values = array("q")
    values.frombytes(file.read_bytes())
    return [_row(*values[i : i + _COLUMNS]) for i in range(0, len(values), _COLUMNS)]


def _row(
    direction: int, at: int, left: int, due: int, size: int, action: int, kind: int, port: int, seq: int, payload: int
) -> LinkRow:
    return LinkRow(
        direction="down" if direction else "up",
        arrived_at=at,
        left_at=None if left < 0 else left,
        due_at=None if due < 0 else due,
        size_bytes=size,
        action=ACTIONS[action],
        kind=_KINDS[kind],
        client_port=port,
        seq=seq,
        payload_bytes=payload,
    )


def _be_prompt() -> None:
    """Whatever helps to wake on time and is allowed."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    gc.freeze()
    gc.disable()


def main(arguments: list[str]) -> None:
    """The link process."""
    config, log, left, right = arguments
    path = Path.from_mapping(json.loads(FilePath(config).read_text()))
    emulator = Emulator(Port(left), Port(right), path)

    def on_term(_signal: int, _frame: FrameType | None) -> None:
        emulator.stop()

    signal.signal(signal.SIGTERM, on_term)
    signal.signal(signal.SIGINT, on_term)
    _be_prompt()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    emulator.run()
    emulator.write_log(FilePath(log))


if __name__ == "__main__":
    main(sys.argv[1:])
