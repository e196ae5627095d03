"""Memory that passes over columns use again and again."""

from __future__ import annotations

import os
from contextlib import suppress

SMALL_BYTES = 2 << 30
"""Of what is larger only parts are in memory at a time: there, what one frees another need not keep."""
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
_SETTINGS = {_M_MMAP_THRESHOLD: 32 << 20, _M_TRIM_THRESHOLD: 256 << 20, _M_TOP_PAD: 64 << 20}


def keep_freed_memory(path: str) -> bool:
    """Ask the C library to keep the memory of freed arrays, if the file is not a large one. Says whether it does.

    By default glibc gives every array of some size back to the system, which clears the pages for the next one: 1.18 s instead of 1.09
    for a million packets. Only for a process that ends with its work; with other C libraries nothing is done (mallopt(3)).
    """
    with suppress(OSError, AttributeError, TypeError):
        if os.path.getsize(path) >= SMALL_BYTES:
            return False
        import ctypes

        mallopt = ctypes.CDLL(None).mallopt
        return all(mallopt(name, value) for name, value in _SETTINGS.items())
    return False
