"""What every server of the lab is: a thread of its own with its own event loop, listening sockets, a folder, and the truth it writes."""

from __future__ import annotations

import asyncio
import shutil
import socket
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from netdiag.lab.clock import precise_event_loop
from netdiag.lab.listening import Sockets, address_text, listen
from netdiag.lab.truth import TruthLog

_STOP_SECONDS = 5.0


class Service(ABC):
    """A context manager that serves while it is entered."""

    scheme = "http"

    def __init__(self, sockets: Sockets, *, log_stream: TextIO | None = None) -> None:
        """Nothing is opened before ``start``. ``log_stream`` gets the truth as JSON lines while it is made."""
        self.log = TruthLog(log_stream)
        self._sockets = sockets
        self._listeners: list[socket.socket] = []
        self._folder: Path | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._ready = threading.Event()
        self._connections = 0

    @property
    def port(self) -> int:
        """The port, also when any was asked for."""
        return int(self._listeners[0].getsockname()[1])

    @property
    def url(self) -> str:
        """``https://localhost:PORT`` without a path."""
        host = self._sockets.host
        return f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def folder(self) -> Path:
        """A private folder (0700) that lives as long as the service."""
        assert self._folder is not None, "not started"
        return self._folder

    def start(self) -> Self:
        """Bind and serve; returns when connections are accepted. Raises AddressInUse or UsageError."""
        self._folder = Path(tempfile.mkdtemp(prefix="netdiag-lab-"))
        try:
            self.prepare()
            self._listeners = listen(self._sockets)
            self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)
            self._thread.start()
            self._ready.wait(_STOP_SECONDS)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Close everything and remove the folder; a second call does nothing."""
        thread, self._thread = self._thread, None
        if thread is not None and self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            thread.join(_STOP_SECONDS)
        for listener in self._listeners:
            listener.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def prepare(self) -> None:  # noqa: B027 (nothing to prepare is the common case)
        """What has to be there before the first connection. Raises UsageError."""

    @abstractmethod
    async def serve(self, sock: socket.socket, number: int) -> None:
        """One accepted connection until it ends; ``number`` counts from 0."""

    def _run(self) -> None:
        loop = precise_event_loop()
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._accept_all(loop))
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    async def _accept_all(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._stopping = loop, asyncio.Event()
        accepting = [asyncio.ensure_future(self._accept(listener)) for listener in self._listeners]
        self._ready.set()
        await self._stopping.wait()
        everything = {*accepting, *asyncio.all_tasks()} - {asyncio.current_task()}
        for task in everything:
            task.cancel()
        await asyncio.gather(*everything, return_exceptions=True)

    async def _accept(self, listener: socket.socket) -> None:
        tasks: set[asyncio.Task[None]] = set()
        while True:
            sock, peer = await asyncio.get_running_loop().sock_accept(listener)
            number, self._connections = self._connections, self._connections + 1
            server = address_text(sock.getsockname())
            self.log.add("accept", number, at=time.time_ns(), client=address_text(peer), server=server)
            task = asyncio.ensure_future(self.serve(sock, number))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
