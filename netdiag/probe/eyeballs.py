"""Happy Eyeballs (RFC 8305 sections 4 and 5): race the addresses of a host, families in turn, 250 ms apart, first connection wins.

httpx's synchronous client tries one address after the other, each for its whole time limit; browsers and curl race.
"""

from __future__ import annotations

import errno
import itertools
import selectors
import socket
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from netdiag.probe.clock import ProbeClock
from netdiag.probe.failures import attempt_outcome
from netdiag.records.call import AddressAttempt

CONNECTION_ATTEMPT_DELAY_S = 0.25
"""RFC 8305 section 5."""
_SELECTOR = getattr(selectors, "PollSelector", selectors.SelectSelector)
_UNDER_WAY = (0, errno.EINPROGRESS, errno.EWOULDBLOCK)
_NO_SUCH_FAMILY = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
"""What the kernel says to a socket of a family that this host does not have."""


@dataclass(slots=True)
class Race:
    """How a race went: ``winner`` is None when no attempt connected (``attempts`` then says why each one failed)."""

    winner: socket.socket | None = None
    won: AddressAttempt | None = None
    attempts: list[AddressAttempt] = field(default_factory=list)


@dataclass(slots=True)
class _Pending:
    """An attempt under way."""

    address: str
    started_at: int
    sock: socket.socket
    client_port: int | None = None


def interleave(addresses: Iterable[str]) -> list[str]:
    """Families in turn, the preferred one first, order kept inside each (RFC 8305 section 4)."""
    by_family: dict[bool, list[str]] = {}
    for address in addresses:
        by_family.setdefault(":" in address, []).append(address)
    rounds = itertools.zip_longest(*by_family.values())
    return [address for one_of_each in rounds for address in one_of_each if address is not None]


def race(
    addresses: Sequence[str],
    port: int,
    *,
    clock: ProbeClock,
    timeout_s: float,
    local_address: str | None = None,
    delay_s: float = CONNECTION_ATTEMPT_DELAY_S,
) -> Race:
    """Connect to the first address that answers. Sockets of the losers are closed; the winner's is non-blocking, with TCP_NODELAY."""
    runner = _Runner(interleave(addresses), port, clock, local_address)
    try:
        return runner.run(time.monotonic() + timeout_s, delay_s)
    finally:
        runner.abandon("timeout" if runner.race.winner is None else "abandoned")


class _Runner:
    def __init__(self, addresses: list[str], port: int, clock: ProbeClock, local_address: str | None) -> None:
        self.race = Race()
        self._waiting = addresses
        self._port = port
        self._clock = clock
        self._local_address = local_address
        self._pending: dict[int, _Pending] = {}
        self._selector = _SELECTOR()

    def run(self, deadline_s: float, delay_s: float) -> Race:
        next_start_s = 0.0
        while self.race.winner is None:
            now_s = time.monotonic()
            if now_s >= deadline_s or not (self._waiting or self._pending):
                break
            if self._waiting and (now_s >= next_start_s or not self._pending):
                self._start(self._waiting.pop(0))
                next_start_s = now_s + delay_s
                continue
            wake_s = min(deadline_s, next_start_s) if self._waiting else deadline_s
            if not self._finish_ready(wake_s - now_s):
                next_start_s = 0.0  # a failed attempt starts the next one at once (section 5)
        return self.race

    def abandon(self, outcome: str) -> None:
        """Close what is still connecting."""
        for pending in self._pending.values():
            pending.sock.close()
            self._note_end(pending, outcome, self._clock.now())
        self._pending.clear()
        self._selector.close()

    def _start(self, address: str) -> None:
        started_at = self._clock.now()
        try:
            sock = _new_socket(address, self._local_address)
        except OSError as error:
            if error.errno not in _NO_SUCH_FAMILY:
                raise
            self._note(address, started_at, attempt_outcome(error.errno))  # the other family may do
            return
        number = sock.connect_ex((address, self._port))
        if number not in _UNDER_WAY:
            sock.close()
            self._note(address, started_at, attempt_outcome(number))
            return
        self._pending[sock.fileno()] = _Pending(address, started_at, sock, sock.getsockname()[1])
        self._selector.register(sock, selectors.EVENT_WRITE)

    def _finish_ready(self, timeout_s: float) -> bool:
        """Wait for attempts to end. False when one of them failed."""
        nothing_failed = True
        for key, _events in self._selector.select(max(0.0, timeout_s)):
            ended_at = self._clock.now()
            pending = self._pending.pop(key.fd)
            self._selector.unregister(pending.sock)
            number = pending.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number or self.race.winner is not None:
                pending.sock.close()
                self._note_end(pending, attempt_outcome(number) if number else "abandoned", ended_at)
                nothing_failed = nothing_failed and not number
            else:
                self.race.winner = pending.sock
                self.race.won = self._note_end(pending, "connected", ended_at)
        return nothing_failed

    def _note_end(self, pending: _Pending, outcome: str, ended_at: int) -> AddressAttempt:
        return self._note(
            pending.address, pending.started_at, outcome, ended_at=ended_at, client_port=pending.client_port
        )

    def _note(
        self,
        address: str,
        started_at: int,
        outcome: str,
        *,
        ended_at: int | None = None,
        client_port: int | None = None,
    ) -> AddressAttempt:
        attempt = AddressAttempt(
            address=address,
            port=self._port,
            started_at=started_at,
            ended_at=self._clock.now() if ended_at is None else ended_at,
            outcome=outcome,
            client_port=client_port,
        )
        self.race.attempts.append(attempt)
        return attempt


def _new_socket(address: str, local_address: str | None) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if local_address is not None:
            sock.bind((local_address, 0))
    except OSError:
        sock.close()
        raise
    return sock
