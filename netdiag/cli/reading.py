"""One capture file to one analysis, with a progress bar; and a pipe that has to be read more than once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from netdiag.records.analysis import Analysis


_STANDARD_INPUT = "/dev/stdin"
"""A regular file there can be opened again by this name."""


def read(
    path: str,
    keylog: str | None,
    *,
    quiet: bool = False,
    jobs: int | None = None,
    name: str | None = None,
    in_full: bool = False,
) -> Analysis:
    """Analyse a file, which the result calls ``name`` where that is given. ``in_full`` as in ``netdiag.api.analyze``, and raises what that
    raises."""
    from dataclasses import replace

    from netdiag import api
    from netdiag.cli.memory import keep_freed_memory
    from netdiag.cli.pipe import opened
    from netdiag.cli.progress import progress

    with progress("standard input" if path == "-" else path, quiet=quiet) as report, opened(path, report) as source:
        keep_freed_memory(path)
        analysis = api.analyze(source, keylog=keylog, progress=report, jobs=jobs, in_full=in_full)
    called = name or path
    if called == path and (isinstance(source, str) or path == "-"):
        return analysis
    return replace(analysis, source=replace(analysis.source, path=None if called == "-" else called))


@contextmanager
def readable_again(path: str, *, quiet: bool = False) -> Iterator[str]:
    """A name under which the octets of ``path`` can be read as often as needed: what comes through a pipe (standard input, FIFO) is first
    taken to its end, with the same patience as by ``read``, and kept in a temporary file as long as the block lasts.

    Raises ``CaptureFileError`` where what comes is no capture, or cannot be kept.
    """
    import tempfile

    with tempfile.NamedTemporaryFile(prefix="netdiag-") as file:
        yield _kept(path, file, quiet)


def _kept(path: str, file: IO[bytes], quiet: bool) -> str:
    from netdiag import api
    from netdiag.cli.pipe import opened
    from netdiag.cli.progress import progress
    from netdiag.errors import CaptureFileError

    with progress("standard input" if path == "-" else path, quiet=quiet) as report, opened(path, report) as source:
        if isinstance(source, str):
            return _STANDARD_INPUT if source == "-" else source
        with api.open_capture(source) as capture:
            try:
                file.write(capture.buffer)
                file.flush()
            except OSError as error:
                raise CaptureFileError(f"what was read cannot be kept: {error.strerror}", path=path) from error
    return file.name
