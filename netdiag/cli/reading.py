"""One capture file to one analysis, with a progress bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netdiag.records.analysis import Analysis


def read(path: str, keylog: str | None, *, quiet: bool = False, jobs: int | None = None) -> Analysis:
    """Analyse a file. Raises what ``netdiag.api.analyze`` raises."""
    from dataclasses import replace

    from netdiag import api
    from netdiag.cli.memory import keep_freed_memory
    from netdiag.cli.pipe import opened
    from netdiag.cli.progress import progress

    with progress("standard input" if path == "-" else path, quiet=quiet) as report, opened(path, report) as source:
        keep_freed_memory(path)
        analysis = api.analyze(source, keylog=keylog, progress=report, jobs=jobs)
    if isinstance(source, str) or path == "-":
        return analysis
    return replace(analysis, source=replace(analysis.source, path=path))
