"""An application's transport with every request watched: one shell for threads, one for asyncio, and the same ``Watch`` in both.

Both are classes of the client library's own bases, which are known only when there is a client: httpx's or httpx2's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from netdiag.probe.observation import Observation, Watch


def watched_sync(inner: Any, observation: Observation, library: Any) -> Any:
    """``library`` is the module of the client, ``inner`` its transport."""

    class Body(_SyncBody, library.SyncByteStream):  # type: ignore[misc]
        pass

    class Transport(library.BaseTransport):  # type: ignore[misc]
        def handle_request(self, request: Any) -> Any:
            watch = Watch(observation, request)
            watch.begin(is_async=False)
            with watch.at_work():
                response = inner.handle_request(request)
            watch.answered(response)
            response.stream = Body(response.stream, watch)
            return response

        def close(self) -> None:
            inner.close()

        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

    return Transport()


class _SyncBody:
    """The response's body, noted as the application takes it."""

    def __init__(self, stream: Any, watch: Watch) -> None:
        self._stream, self._watch = stream, watch

    def __iter__(self) -> Iterator[bytes]:
        pieces = iter(self._stream)
        while True:
            with self._watch.at_work():
                piece = next(pieces, None)
            if piece is None:
                self._watch.end(whole=True)
                return
            self._watch.piece(piece)
            yield piece

    def close(self) -> None:
        self._watch.end(whole=False)
        self._stream.close()


def watched_async(inner: Any, observation: Observation, library: Any) -> Any:
    """As ``watched_sync``, for an asynchronous client."""

    class Body(_AsyncBody, library.AsyncByteStream):  # type: ignore[misc]
        pass

    class Transport(library.AsyncBaseTransport):  # type: ignore[misc]
        async def handle_async_request(self, request: Any) -> Any:
            watch = Watch(observation, request)
            watch.begin(is_async=True)
            with watch.at_work():
                response = await inner.handle_async_request(request)
            watch.answered(response)
            response.stream = Body(response.stream, watch)
            return response

        async def aclose(self) -> None:
            await inner.aclose()

        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

    return Transport()


class _AsyncBody:
    """As ``_SyncBody``."""

    def __init__(self, stream: Any, watch: Watch) -> None:
        self._stream, self._watch = stream, watch

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._stream)
        while True:
            with self._watch.at_work():
                piece = await anext(pieces, None)
            if piece is None:
                self._watch.end(whole=True)
                return
            self._watch.piece(piece)
            yield piece

    async def aclose(self) -> None:
        self._watch.end(whole=False)
        await self._stream.aclose()
