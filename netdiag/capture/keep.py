"""Keep a capture of ours for the user: a copy that nobody else can read, with the session keys inside only when asked for."""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
from collections.abc import Iterator
from typing import BinaryIO, Literal

from netdiag.errors import OutputError

_BYTE_ORDER_MAGIC_LITTLE = b"\x4d\x3c\x2b\x1a"
_DECRYPTION_SECRETS_BLOCK, _TLS_KEY_LOG = 0x0000000A, 0x544C534B


def keep(source: str, destination: str, keylog: bytes = b"") -> None:
    """Copy a pcapng file to a new file (0600), with the key log in a Decryption Secrets Block when there is one. Never overwrites.

    Raises ``OutputError``. A file that holds its keys is as secret as the traffic.
    """
    try:
        with open(source, "rb") as origin, _whole_or_nothing(destination) as target:
            start = origin.read(64 * 1024)
            head = _section_header(start)
            target.write(head)
            if keylog:  # before the packets that need it
                target.write(_secrets_block(keylog, _byte_order(start)))
            origin.seek(len(head))
            shutil.copyfileobj(origin, target, 1 << 20)
    except OSError as error:
        raise OutputError(f"the capture cannot be saved: {error.strerror}", path=destination) from error


@contextlib.contextmanager
def _whole_or_nothing(path: str) -> Iterator[BinaryIO]:
    """A new file (0600), which is removed again when it cannot be written to its end. Raises ``OSError``."""
    file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600), "wb")
    try:
        with file:
            yield file
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise


def keep_keylog(keylog: bytes, path: str) -> None:
    """Write a key log to a new file (0600). Raises ``OutputError``."""
    try:
        with _whole_or_nothing(path) as file:
            file.write(keylog)
    except OSError as error:
        raise OutputError(f"the key log cannot be kept: {error.strerror}", path=path) from error


def _section_header(start: bytes) -> bytes:
    """The Section Header Block."""
    return start[: int.from_bytes(start[4:8], _byte_order(start))] if len(start) >= 12 else start


def _byte_order(start: bytes) -> Literal["little", "big"]:
    return "little" if start[8:12] == _BYTE_ORDER_MAGIC_LITTLE else "big"


def _secrets_block(keylog: bytes, order: Literal["little", "big"]) -> bytes:
    sign = "<" if order == "little" else ">"
    padded = keylog + bytes(-len(keylog) % 4)
    length = 20 + len(padded)
    head = struct.pack(sign + "IIII", _DECRYPTION_SECRETS_BLOCK, length, _TLS_KEY_LOG, len(keylog))
    return head + padded + struct.pack(sign + "I", length)
