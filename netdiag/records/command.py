"""What became of a program that ran under a capture."""

from __future__ import annotations

from dataclasses import dataclass

from netdiag.records.analysis import Analysis


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRun:
    """The program's own connections, and how it ended."""

    analysis: Analysis
    exit_code: int
    """Negative: the signal that ended it."""
    started_at: int
    ended_at: int
