"""What the connections of a capture file said, with the moments of every turn: the pipeline's first half, for tests of what is decoded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from netdiag.analysis.dialogue import Dialogue
from netdiag.analysis.gather import gather
from netdiag.analysis.hearing import hear_all
from netdiag.capture.source import open_capture
from netdiag.protocols.tls.keylog import merge_keylogs
from netdiag.protocols.turn import Turn
from netdiag.records.connection import Connection
from netdiag.wire.connections import track
from netdiag.wire.measure import measure
from netdiag.wire.segments import segment
from netdiag.wire.tls_records import chain


@dataclass(frozen=True)
class Heard:
    """One connection."""

    connection: Connection
    dialogue: Dialogue | None

    @property
    def turns(self) -> list[Turn]:
        """Of all its layers."""
        return [] if self.dialogue is None else [turn for leg in self.dialogue.legs for turn in leg.turns]


def heard(path: Path, keylog: Path | None = None) -> list[Heard]:
    """All connections of a file, with the keys given and those embedded."""
    with open_capture(path) as capture:
        gathered = gather(capture.windows())
        texts = [("key log", keylog.read_bytes())] if keylog else []
        keys = merge_keylogs([*texts, *(("embedded", text) for text in capture.secrets)])
        flows = track(gathered.packets, gathered.buffer)
        segments = segment(flows)
        table = measure(flows, segments, gathered.buffer)
        connections = [table.record(i) for i in range(len(table))]
        records = chain(gathered.buffer, segments)
        ports = {c.id: c.server.port for c in connections}
        dialogues = hear_all(gathered.buffer, segments, records, ports, keys or None)
        return [Heard(c, dialogues.get(c.id)) for c in connections]
