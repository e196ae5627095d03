"""httpx over httpcore's public connection pool with our network backend: so it is httpx that is measured, seen from inside."""

from __future__ import annotations

import ssl
import typing
from collections.abc import Iterator
from contextlib import contextmanager

import httpcore
import httpx

from netdiag.probe.backend import RecordingBackend

_EXCEPTIONS: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (httpcore.ConnectTimeout, httpx.ConnectTimeout),
    (httpcore.ReadTimeout, httpx.ReadTimeout),
    (httpcore.WriteTimeout, httpx.WriteTimeout),
    (httpcore.PoolTimeout, httpx.PoolTimeout),
    (httpcore.ConnectError, httpx.ConnectError),
    (httpcore.ReadError, httpx.ReadError),
    (httpcore.WriteError, httpx.WriteError),
    (httpcore.NetworkError, httpx.NetworkError),
    (httpcore.ProxyError, httpx.ProxyError),
    (httpcore.UnsupportedProtocol, httpx.UnsupportedProtocol),
    (httpcore.LocalProtocolError, httpx.LocalProtocolError),
    (httpcore.RemoteProtocolError, httpx.RemoteProtocolError),
)


@contextmanager
def _as_httpx() -> Iterator[None]:
    """httpcore's exceptions as httpx's, with the original as the cause (which knows the outcome)."""
    try:
        yield
    except Exception as error:
        for inner, outer in _EXCEPTIONS:
            if isinstance(error, inner):
                raise outer(str(error)) from error
        raise


class RecordingTransport(httpx.BaseTransport):
    """One connection pool of one arm. HTTP/2 is what the arm says, never a choice of the server."""

    def __init__(
        self,
        backend: RecordingBackend,
        context: ssl.SSLContext,
        *,
        max_connections: int,
        keep_alive: bool,
        proxy: httpx.Proxy | None = None,
    ) -> None:
        http2 = backend.offer.protocol == "h2"
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            proxy=None if proxy is None else _proxy(proxy, backend.offer.proxy_context),
            max_connections=max_connections,
            max_keepalive_connections=max_connections if keep_alive else 0,
            keepalive_expiry=None,
            http1=not http2,
            http2=http2,
            retries=0,
            network_backend=backend,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """httpx's contract: the response with its body still to be read."""
        assert isinstance(request.stream, httpx.SyncByteStream)
        inner = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_httpx():
            response = self._pool.handle_request(inner)
        assert isinstance(response.stream, typing.Iterable)
        return httpx.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_Body(response.stream),
            extensions=response.extensions,
        )

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, inner: typing.Iterable[bytes]) -> None:
        self._inner = inner

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx():
            yield from self._inner

    def close(self) -> None:
        if hasattr(self._inner, "close"):
            self._inner.close()


def _proxy(proxy: httpx.Proxy, context: ssl.SSLContext | None) -> httpcore.Proxy:
    return httpcore.Proxy(
        url=httpcore.URL(
            scheme=proxy.url.raw_scheme, host=proxy.url.raw_host, port=proxy.url.port, target=proxy.url.raw_path
        ),
        auth=proxy.raw_auth,
        headers=proxy.headers.raw,
        ssl_context=context,
    )
