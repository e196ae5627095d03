"""One capture file to one analysis, with a progress bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netdiag.records.analysis import Analysis


def read(path: str, keylog: str | None, *, quiet: bool = False) -> Analysis:
    """Analyse a file. Raises what ``netdiag.api.analyze`` raises."""
    from netdiag import api
    from netdiag.cli.progress import progress

    with progress(path, quiet=quiet) as report:
        return api.analyze(path, keylog=keylog, progress=report)
