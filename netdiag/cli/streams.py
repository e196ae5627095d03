"""Standard streams that the caller has closed (``>&-``, some daemons): found before anything is opened in their place."""

from __future__ import annotations

import os
import sys

from netdiag.errors import OutputError


def fill_closed_streams() -> None:
    """Give closed standard streams a place that takes or gives nothing, so that no file of ours becomes descriptor 0, 1 or 2.

    Raises ``OutputError`` where standard output is closed: a report that nobody can get is an error, not a success.
    """
    closed = [descriptor for descriptor in (0, 1, 2) if not _is_open(descriptor)]
    for _ in closed:
        os.open(os.devnull, os.O_RDWR)  # the lowest free descriptor is the closed one
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        raise OutputError("standard output is closed")


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
