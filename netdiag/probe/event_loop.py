"""Waiting for a recorded socket in an asyncio event loop."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

from netdiag.probe.limits import Deadline
from netdiag.probe.recorded_socket import RecordedSocket


async def readable(sock: RecordedSocket, limit: Deadline) -> None:
    """Wait until something arrived. Raises the read failure of the limit."""
    loop = asyncio.get_running_loop()
    if not await _event(loop.add_reader, loop.remove_reader, sock, limit):
        raise limit.read_failure()


async def writable(sock: RecordedSocket, limit: Deadline) -> None:
    """Wait until there is room to send. Raises the write failure of the limit."""
    loop = asyncio.get_running_loop()
    if not await _event(loop.add_writer, loop.remove_writer, sock, limit):
        raise limit.write_failure()


async def _event(add: Callable[..., None], remove: Callable[[Any], Any], sock: RecordedSocket, limit: Deadline) -> bool:
    """Wait until the loop calls the socket ready (which queued stamps make it, too). False when the time is over."""
    ready = asyncio.get_running_loop().create_future()

    def set_ready() -> None:
        sock.take_stamps()
        if not ready.done():
            ready.set_result(None)

    add(sock.sock, set_ready)
    try:
        async with asyncio.timeout(None if math.isinf(limit.at_s) else limit.left_s()):
            await ready
    except TimeoutError:
        return False
    finally:
        remove(sock.sock)
    return True
