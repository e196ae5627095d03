"""Where the columns of a capture are kept between reading it and judging it: in memory, or (for what is larger) wherever the caller says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from netdiag.analysis.sharing import Runner, one_by_one
from netdiag.wire.decode import COLUMN_TYPES, RAW_TYPES
from netdiag.wire.tables import Buffer, Int64, Packets


class Loaded(NamedTuple):
    """Packets of some endpoint pairs, in file order."""

    packets: Packets
    buffer: Buffer | None = None
    """What their offsets point into, where that is not the capture itself."""


class Storage(Protocol):
    """Takes the packets window by window, and gives them back in partitions: all packets of an endpoint pair are in the same one."""

    @property
    def bounded(self) -> bool:
        """Memory is dear: what can be made again is not kept."""
        ...

    def add(self, packets: Packets, read: float) -> None:
        """The packets of one window, in file order; ``read`` is the share of the file that has been read."""
        ...

    def partitions(self, run: Runner = one_by_one) -> Sequence[Callable[[], Loaded]]:
        """After the last window: each partition's packets, in file order."""
        ...

    def put(self, columns: Int64) -> Callable[[], Int64]:
        """Puts columns away; the function brings them back."""
        ...

    def room(self, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """An array to be filled."""
        ...

    def release(self) -> None:
        """Nothing is being worked on: memory that only speeds up reading may go."""
        ...


class InMemory:
    """Everything stays where it is."""

    bounded = False

    def __init__(self) -> None:
        self._parts: list[Packets] = []

    def add(self, packets: Packets, read: float) -> None:
        """As ``Storage``."""
        self._parts.append(packets)

    def partitions(self, run: Runner = one_by_one) -> Sequence[Callable[[], Loaded]]:
        """One."""
        packets = joined(self._parts, run)
        self._parts = [packets]
        return [lambda: Loaded(packets)]

    def put(self, columns: Int64) -> Callable[[], Int64]:
        """As ``Storage``."""
        return lambda: columns

    def room(self, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """As ``Storage``."""
        return np.empty(count, dtype)

    def release(self) -> None:
        """As ``Storage``."""


def joined(parts: Sequence[Packets], run: Runner = one_by_one) -> Packets:
    """All packets of the parts, in order."""
    if len(parts) == 1:
        return parts[0]
    types = RAW_TYPES | COLUMN_TYPES
    if not parts:
        return Packets(**{name: np.empty(0, kind) for name, kind in types.items()})
    columns = run(lambda name: np.concatenate([getattr(part, name) for part in parts]), types)
    return Packets(**dict(zip(types, columns, strict=True)))
