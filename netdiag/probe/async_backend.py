"""The recording backend for asyncio: connections of ``backend``, read and written in the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import httpcore

from netdiag.probe.async_stream import AsyncRecordingStream
from netdiag.probe.backend import RecordingBackend
from netdiag.probe.stream import RecordingStream


class AsyncRecordingBackend(httpcore.AsyncNetworkBackend):
    """Resolves and connects in a thread (name resolution blocks anyway), reads and writes in the loop. asyncio only."""

    def __init__(self, inner: RecordingBackend) -> None:
        self.inner = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """As ``RecordingBackend.connect_tcp``."""
        stream = await asyncio.to_thread(self.inner.connect_tcp, host, port, timeout, local_address, socket_options)
        assert isinstance(stream, RecordingStream)
        return AsyncRecordingStream(stream.notes, host)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Unix sockets have no network path to measure."""
        raise httpcore.UnsupportedProtocol("a recording goes over TCP")

    async def sleep(self, seconds: float) -> None:
        """httpcore's retries."""
        await asyncio.sleep(seconds)
