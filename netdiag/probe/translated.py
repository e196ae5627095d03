"""A backend for another httpcore: the application catches its own library's exceptions, so it must be those that are raised."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import httpcore


def translated(backend: Any, core: ModuleType, *, is_async: bool) -> Any:
    """The backend with the exceptions of ``core``, which is ``httpcore`` or a successor of the same shape."""
    return backend if core is httpcore else Translated(backend, core, is_async=is_async)


class Translated:
    """Stands before a backend or a stream, and raises the exceptions of another httpcore."""

    def __init__(self, inner: Any, core: ModuleType, *, is_async: bool) -> None:
        self._inner = inner
        self._core = core
        self._is_async = is_async

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name not in _TRANSLATED:
            return value
        return self._awaited(value) if self._is_async else self._called(value)

    def _called(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            with self._as_theirs():
                return self._wrapped(method(*arguments, **options))

        return call

    def _awaited(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*arguments: Any, **options: Any) -> Any:
            with self._as_theirs():
                return self._wrapped(await method(*arguments, **options))

        return call

    def _wrapped(self, result: Any) -> Any:
        return Translated(result, self._core, is_async=self._is_async) if hasattr(result, "start_tls") else result

    @contextmanager
    def _as_theirs(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            for kind in type(error).__mro__:
                if kind.__module__.partition(".")[0] == "httpcore" and hasattr(self._core, kind.__name__):
                    raise getattr(self._core, kind.__name__)(str(error)) from error
            raise


_TRANSLATED = frozenset({"connect_tcp", "start_tls", "read", "write"})
