"""Result files: written beside their final name and moved there whole, so that a reader never sees half of one and an old one survives a full disk."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from netdiag.errors import OutputError


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A binary file that takes the name ``path`` when the block ends well; on any error the old file stays and nothing is left behind.

    ``mode`` is narrowed by the umask. Raises ``OutputError`` when the place cannot be written, is a directory or is a symbolic link
    (following one would let whoever owns the folder choose what we overwrite).
    """
    target = Path(path)
    _refuse(target)
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name[:40]}.", dir=target.parent)
    except OSError as error:
        raise _cannot_write(target, error) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode & ~_umask())
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise _cannot_write(target, error) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _refuse(target: Path) -> None:
    if target.is_symlink():
        raise OutputError("is a symbolic link; netdiag does not write through links", path=str(target))
    if target.is_dir():
        raise OutputError("is a directory", path=str(target))


def _cannot_write(target: Path, error: OSError) -> OutputError:
    return OutputError(f"cannot be written: {error.strerror or error}", path=str(target))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
