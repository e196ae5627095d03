"""What the machine behind the server is busy with: a queue, the reading of long prompts, a cold start, backends of different speed.

All of it comes before an answer's own schedule, which then runs as if the request had arrived that much later; the truth says how much each took.
"""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import dataclass, field

from netdiag.lab.answers import Application
from netdiag.lab.clock import Stamp, ns
from netdiag.lab.config import LabConfig
from netdiag.lab.perform import Performance


@dataclass(frozen=True, slots=True)
class Admission:
    """One request's way to the machine. ``anchor`` is where its answer's schedule begins."""

    anchor: Stamp
    queue_ns: int
    prefill_ns: int
    cold_ns: int
    backend: int | None

    @property
    def idle(self) -> bool:
        """Nothing of it happened."""
        return not (self.queue_ns or self.prefill_ns or self.cold_ns) and self.backend is None

    def facts(self) -> dict[str, int | None]:
        """For the truth."""
        return {
            "queue_ns": self.queue_ns,
            "prefill_ns": self.prefill_ns,
            "cold_ns": self.cold_ns,
            "backend": self.backend,
        }


@dataclass(slots=True)
class Backend:
    """Everything behind the HTTP conversations: what is answered, and by how busy a machine."""

    app: Application
    work: WorkModel

    @staticmethod
    def of(config: LabConfig) -> Backend:
        """Fresh: nothing served yet."""
        return Backend(Application(config.behaviour, config.seed), WorkModel(config))


@dataclass(slots=True)
class WorkModel:
    """State of the machine. Belongs to the server's loop."""

    config: LabConfig
    _slots: asyncio.Semaphore | None = field(init=False)
    _last_end: Stamp | None = None
    _busy: int = 0

    def __post_init__(self) -> None:
        """As many slots as requests may be worked on at once."""
        capacity = self.config.capacity
        self._slots = None if capacity is None else asyncio.Semaphore(capacity)

    async def give(self, performance: Performance, anchor: Stamp, request_bytes: int, connection: int) -> None:
        """Admit a request (``anchor``: its last octet), then let its answer be given. Raises what ``Performance.give`` raises."""
        admission = await self.begin(anchor, request_bytes, connection)
        try:
            if not admission.idle:
                performance.note("work", admission.anchor, **admission.facts())
            await performance.give(admission.anchor)
        finally:
            self.end()

    async def begin(self, anchor: Stamp, request_bytes: int, connection: int) -> Admission:
        """Wait for a slot; ``end`` must follow."""
        queue_ns = await self._queue(anchor)
        cold_ns = self._cold(anchor)
        prefill_ns = round(ns(self.config.prefill_ms_per_kib) * request_bytes / 1024)
        backend, slower_ns = self._backend(connection)
        self._busy += 1
        delay_ns = queue_ns + cold_ns + prefill_ns + slower_ns
        return Admission(anchor.after(delay_ns), queue_ns, prefill_ns + slower_ns, cold_ns, backend)

    def end(self) -> None:
        """The request is answered, or given up."""
        self._busy -= 1
        self._last_end = Stamp.now()
        if self._slots is not None:
            self._slots.release()

    async def _queue(self, anchor: Stamp) -> int:
        if self._slots is None:
            return 0
        at_once = not self._slots.locked()
        await self._slots.acquire()
        return 0 if at_once else max(0, Stamp.now().monotonic_ns - anchor.monotonic_ns)

    def _cold(self, anchor: Stamp) -> int:
        """The first request after ``cold_after_ms`` of idleness (and the very first) pays for waking up."""
        if not self.config.cold_start_ms or self._busy:
            return 0
        idle = self._last_end is None or anchor.monotonic_ns - self._last_end.monotonic_ns >= ns(
            self.config.cold_after_ms
        )
        return ns(self.config.cold_start_ms) if idle else 0

    def _backend(self, connection: int) -> tuple[int | None, int]:
        """A connection stays with one backend; ``backends`` are the extra milliseconds of each."""
        backends = self.config.backends
        if not backends:
            return None, 0
        chosen = zlib.crc32(f"{self.config.seed}/{connection}".encode()) % len(backends)
        return chosen, ns(backends[chosen])
