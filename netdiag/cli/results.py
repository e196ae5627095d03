"""What a probe or a watched program leaves behind: the report, result files, and one line that says which of them are secret."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import TextIO

from netdiag.cli import outputs
from netdiag.records.analysis import Analysis

CAPTURE_ENDING = ".pcapng"
ENDINGS = (".json", CAPTURE_ENDING, *outputs.PICTURES)


def capture_path(paths: Sequence[str], *, force: bool) -> str | None:
    """The capture file among the outputs, if any; with ``force`` an old one makes room, since captures are only ever new files."""
    path = next((path for path in paths if outputs.ending_of(path) == CAPTURE_ENDING), None)
    if path is not None and force:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    return path


def print_report(analysis: Analysis, *, top: int | None = None, stream: TextIO | None = None) -> None:
    """The terminal report, on standard output unless ``stream`` says otherwise."""
    from netdiag.cli.console import ascii_only, show, width_of
    from netdiag.export.text import Selection, report

    selection = Selection(top=top)
    show(report(analysis, width=width_of(stream), ascii_only=ascii_only(stream), selection=selection), stream)


def check_goals(text: str | None) -> None:
    """Refuse before the work what is no goal. Raises ``UsageError``."""
    if text is not None:
        from netdiag.stats.goals import parse_goals

        parse_goals(text)


def print_goals(analysis: Analysis, text: str | None, *, stream: TextIO) -> int:
    """What the trials say about the goals of ``--slo``; the exit code. Raises ``UsageError`` for what is no goal."""
    if text is None:
        return 0
    from netdiag.cli.console import ascii_only, show, width_of
    from netdiag.cli.goals import describe, exit_code, judge_all
    from netdiag.export.terminal.page import Page
    from netdiag.stats.goals import parse_goals

    judged = judge_all(analysis, parse_goals(text))
    page = Page(width_of(stream), ascii_only=ascii_only(stream))
    describe(page, judged)
    show(page.lines, stream)
    return exit_code(judged)


def write_files(analysis: Analysis, paths: Sequence[str], *, drawing: str | None = None) -> None:
    """Every output but the capture, which is written where it is made."""
    for path in outputs.pictures_last(paths):
        if outputs.ending_of(path) != CAPTURE_ENDING:
            outputs.write(analysis, outputs.Wanted(path=path, ending=outputs.ending_of(path), drawing=drawing))


def say_what_was_written(paths: Sequence[str], *, embed_keys: bool, keep_keys: str | None) -> None:
    """One line for the person, on standard error."""
    from netdiag.cli.console import note

    parts = [_about(path, embed_keys) for path in paths]
    if keep_keys:
        parts.append(f"SESSION KEYS kept in {keep_keys}: they open the traffic")
    if parts:
        note(" · ".join(parts))


def _about(path: str, embed_keys: bool) -> str:
    if outputs.ending_of(path) != CAPTURE_ENDING:
        return f"{path} written"
    if not os.path.exists(path):
        return f"{path} not written: no packets"
    if embed_keys:
        return f"{path} written, KEYS INSIDE: as secret as the traffic"
    return f"{path} written (keys not embedded; --embed-keys to embed)"
