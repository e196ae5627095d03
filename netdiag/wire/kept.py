"""Values that are computed once for an object, when somebody asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, TypeVar, overload

Holder = TypeVar("Holder")
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


def kept_by_argument(compute: Callable[[Holder], Value]) -> Callable[[Holder], Value]:
    """``kept`` for what is computed elsewhere: a function of one object, whose value that object keeps without knowing its type.

    The object needs a ``__dict__``. Calls from several threads at once may compute the value more than once; they get equal ones.
    """
    name = f"{compute.__module__}.{compute.__qualname__}"

    @wraps(compute)
    def get(holder: Holder) -> Value:
        held = holder.__dict__
        if name not in held:
            held[name] = compute(holder)
        value: Value = held[name]
        return value

    return get
