"""A bounded list of anomalies: hostile traffic must not fill memory with complaints about itself."""

from __future__ import annotations

from netdiag.records.anomaly import Anomaly

_MOST = 200


class AnomalyLog:
    """Collects anomalies of one protocol; after ``_MOST`` of them only says that there were more."""

    __slots__ = ("protocol", "rows")

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        self.rows: list[Anomaly] = []

    def add(self, reason: str, *, packet: int | None = None, offset: int | None = None) -> None:
        """``reason`` is one sentence without control characters (see ``headers.printable``)."""
        if len(self.rows) < _MOST:
            self.rows.append(Anomaly(protocol=self.protocol, reason=reason, packet=packet, offset=offset))
        elif len(self.rows) == _MOST:
            self.rows.append(Anomaly(protocol=self.protocol, reason="more anomalies of this connection are left out"))
