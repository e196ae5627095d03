"""What a path does to packets, as data: delay, jitter, rate, loss, and rules that pick single packets. Pure: frames and instants in,
(release instant, frame) out. The link process (``emulator.py``) does the sending.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from netdiag.errors import UsageError
from netdiag.lab.frames import FrameFacts, reset_for
from netdiag.lab.strict import build, checked, converted

T = TypeVar("T")

NS_PER_MS = 1_000_000
PACKET_KINDS = ("any", "syn", "syn-ack", "data", "ack", "fin", "rst", "udp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Drop ``count`` packets of a kind, beginning with the ``nth`` (1 is the first)."""

    what: str = "any"
    nth: int = 1
    count: int = 1
    address: str | None = None
    """Only packets to or from this address; None for all."""
    port: int | None = None
    """Only packets to or from this port."""

    def __post_init__(self) -> None:
        if self.what not in PACKET_KINDS:
            raise UsageError(f"drop: unknown kind {self.what!r}; there are {', '.join(PACKET_KINDS)}")
        if self.nth < 1 or self.count < 1:
            raise UsageError("drop: nth and count begin at 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """One direction of the path. All off by default: packets pass at once."""

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    """Each packet is late by a uniform draw from 0 to this."""
    rate_mbit: float | None = None
    """Serialisation rate; None is unlimited."""
    queue_bytes: int = 262_144
    """Of the queue before the rate limit; what does not fit is dropped."""
    loss: float = 0.0
    """Probability, 0 to 1, drawn from the seed."""
    duplicate: float = 0.0
    reorder: float = 0.0
    """Probability that a packet is held back by ``reorder_ms``, so that later ones overtake it."""
    reorder_ms: float = 0.0
    keep_order: bool = True
    """Jitter alone never reorders."""
    drops: tuple[Drop, ...] = ()
    blackhole_above_bytes: int | None = None
    """IP packets larger than this vanish without an ICMP message."""
    silent_after_idle_ms: float | None = None
    """A flow that was idle this long is forgotten, as by a NAT: its packets vanish from then on."""
    reset_at_data: int | None = None
    """In place of the k-th data packet the receiver gets a forged RST."""

    def __post_init__(self) -> None:
        for name in ("delay_ms", "jitter_ms", "reorder_ms"):
            if getattr(self, name) < 0:
                raise UsageError(f"path: {name} cannot be negative")
        for name in ("loss", "duplicate", "reorder"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"path: {name} is a probability between 0 and 1")
        if self.rate_mbit is not None and self.rate_mbit <= 0:
            raise UsageError("path: rate_mbit must be positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """Both directions: ``up`` from the client to the server, ``down`` back."""

    up: Direction = field(default_factory=Direction)
    down: Direction = field(default_factory=Direction)
    seed: int = 1

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Path:
        """From TOML or JSON: ``rtt_ms`` is split over both directions, ``up`` and ``down`` refine them. Raises ``UsageError`` on an
        unknown key."""
        rest = dict(values)
        half = _value(rest.pop("rtt_ms", 0.0), float, "rtt_ms") / 2
        seed = _value(rest.pop("seed", 1), int, "seed")
        sides = {name: _direction(name, half, rest.pop(name, {})) for name in ("up", "down")}
        if rest:
            raise UsageError(f"path: unknown key {sorted(rest)[0]!r}")
        return cls(**sides, seed=seed)

    def to_mapping(self) -> dict[str, Any]:
        """The inverse of ``from_mapping``, for the link process."""
        return {"up": dataclasses.asdict(self.up), "down": dataclasses.asdict(self.down), "seed": self.seed}


def _value(value: Any, kind: type[T], name: str) -> T:
    try:
        found: T = converted(value, kind)
        return found
    except (TypeError, ValueError):
        raise UsageError(f"path: {name} cannot be {value!r}") from None


def _direction(name: str, half_rtt_ms: float, values: Mapping[str, Any]) -> Direction:
    where = f"path.{name}"
    if not isinstance(values, Mapping):
        raise UsageError(f"{where} must be a table, not {values!r}")
    rest = dict(values)
    drops = rest.pop("drops", ())
    if isinstance(drops, str) or not isinstance(drops, Sequence):
        raise UsageError(f"{where}: drops must be a list of tables, not {drops!r}")
    chosen = {"delay_ms": half_rtt_ms, **checked(Direction, rest, where, without=("drops",))}
    return Direction(**chosen, drops=tuple(build(Drop, drop, f"{where}.drops") for drop in drops))


@dataclass(frozen=True, slots=True)
class Release:
    """A frame that leaves the link at ``at`` (monotonic ns)."""

    at: int
    frame: bytes


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one frame: released (perhaps twice), or dropped and why."""

    action: str
    """``pass``, ``duplicate``, ``hold``, ``reset``, or ``drop:`` and the reason."""
    releases: tuple[Release, ...] = ()


class DirectionModel:
    """The state of one direction: queue, counters of the rules, flows seen. Deterministic from the seed and the order of packets."""

    def __init__(self, config: Direction, seed: int) -> None:
        self._config = config
        self._random = random.Random(seed)
        self._busy_until = 0
        self._last_release = 0
        self._matches = [0] * len(config.drops)
        self._data_packets = 0
        self._flows: dict[bytes, int] = {}
        self._forgotten: set[bytes] = set()

    def decide(self, at: int, frame: bytes, facts: FrameFacts | None = None) -> Decision:
        """What happens to a frame that arrived at ``at`` (monotonic ns); ``facts`` where they are known already."""
        facts = facts or FrameFacts.of(frame)
        reason = self._dropped(at, facts)
        if reason is not None:
            return Decision(f"drop:{reason}")
        if self._is_reset(facts):
            forged = reset_for(frame, facts)
            return Decision("reset", (Release(self._release_at(at), forged),))
        queued = self._queue(at, len(frame))
        if queued is None:
            return Decision("drop:queue")
        return self._schedule(queued, frame)

    def _schedule(self, at: int, frame: bytes) -> Decision:
        config = self._config
        if config.reorder and self._random.random() < config.reorder:
            return Decision("hold", (Release(at + _ns(config.delay_ms + config.reorder_ms), frame),))
        release = Release(self._release_at(at), frame)
        if config.duplicate and self._random.random() < config.duplicate:
            return Decision("duplicate", (release, release))
        return Decision("pass", (release,))

    def _release_at(self, at: int) -> int:
        release = at + _ns(self._config.delay_ms)
        if self._config.jitter_ms:
            release += _ns(self._random.random() * self._config.jitter_ms)
            if self._config.keep_order:
                release = max(release, self._last_release)
        self._last_release = max(self._last_release, release)
        return release

    def _queue(self, at: int, size: int) -> int | None:
        """When the last octet of the frame has been serialised; None when the queue has no room."""
        rate = self._config.rate_mbit
        if rate is None:
            return at
        start = max(at, self._busy_until)
        if (start - at) * rate / 8_000 > self._config.queue_bytes:
            return None
        self._busy_until = start + round(size * 8_000 / rate)
        return self._busy_until

    def _dropped(self, at: int, facts: FrameFacts) -> str | None:
        if self._by_rule(facts):
            return "rule"
        config = self._config
        if config.blackhole_above_bytes is not None and facts.ip_bytes > config.blackhole_above_bytes:
            return "mtu"
        if config.silent_after_idle_ms is not None and self._forgets(at, facts):
            return "nat"
        if config.loss and facts.is_ip and self._random.random() < config.loss:
            return "loss"
        return None

    def _by_rule(self, facts: FrameFacts) -> bool:
        dropped = False
        for i, rule in enumerate(self._config.drops):
            if facts.matches(rule.what, rule.address, rule.port):
                self._matches[i] += 1
                dropped = dropped or rule.nth <= self._matches[i] < rule.nth + rule.count
        return dropped

    def _forgets(self, at: int, facts: FrameFacts) -> bool:
        if facts.flow is None:
            return False
        last = self._flows.get(facts.flow)
        self._flows[facts.flow] = at
        if last is not None and at - last > _ns(self._config.silent_after_idle_ms or 0):
            self._forgotten.add(facts.flow)
        return facts.flow in self._forgotten

    def _is_reset(self, facts: FrameFacts) -> bool:
        if self._config.reset_at_data is None or facts.kind != "data":
            return False
        self._data_packets += 1
        return self._data_packets == self._config.reset_at_data


def _ns(duration_ms: float) -> int:
    return round(duration_ms * NS_PER_MS)


ACTIONS = ("pass", "duplicate", "hold", "reset", "drop:rule", "drop:mtu", "drop:nat", "drop:loss", "drop:queue")
