"""What is kept of SETTINGS and GOAWAY frames, up to a limit, for findings about one HTTP/2 connection."""

from __future__ import annotations

import struct
from dataclasses import replace

from netdiag.protocols.conversation import Goaway, Http2Facts, SettingsMoment
from netdiag.wire.chunk import Moment

MAX_SETTINGS = 1000
MAX_GOAWAYS = 1000
_SETTING = struct.Struct(">HI")


def settings_of(payload: bytes) -> dict[int, int]:
    """Identifier to value (RFC 9113 section 6.5.1); of one that comes twice the last counts."""
    return dict(_SETTING.iter_unpack(payload[: len(payload) // 6 * 6]))


class FactsKeeper:
    """Takes those frames in the order in which they were complete."""

    def __init__(self, facts: Http2Facts) -> None:
        self._facts = facts
        self._unacknowledged: tuple[list[int], list[int]] = ([], [])

    def settings(self, sender: int, values: dict[int, int], last: Moment) -> None:
        """A SETTINGS frame without ACK."""
        if len(self._facts.settings) < MAX_SETTINGS:
            self._unacknowledged[sender].append(len(self._facts.settings))
            self._facts.settings.append(SettingsMoment(sender=sender, values=values, moment=last))

    def acknowledged(self, sender: int, last: Moment) -> None:
        """The peer's oldest SETTINGS that was not acknowledged is (RFC 9113 section 6.5.3)."""
        waiting = self._unacknowledged[1 - sender]
        if waiting:
            index = waiting.pop(0)
            self._facts.settings[index] = replace(self._facts.settings[index], acknowledged=last)

    def goaway(self, sender: int, payload: bytes, last: Moment) -> tuple[int, int] | None:
        """Its last stream identifier and error code; None for a frame that is too short."""
        if len(payload) < 8:
            return None
        last_stream_id, code = struct.unpack_from(">II", payload)
        last_stream_id &= 0x7FFFFFFF
        if len(self._facts.goaways) < MAX_GOAWAYS:
            self._facts.goaways.append(
                Goaway(sender=sender, last_stream_id=last_stream_id, error_code=code, moment=last)
            )
        return last_stream_id, code
