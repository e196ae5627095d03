"""Values that are computed once for an object, when somebody asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class kept(Generic[Value]):
    """``functools.cached_property`` without its lock, which up to Python 3.11 is one for all objects: threads that work on different parts
    would wait for each other's passes over columns."""

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> kept[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> kept[Value] | Value:
        if instance is None:
            return self
        value = self._compute(instance)
        instance.__dict__[self._name] = value  # found before this descriptor from now on
        return value
