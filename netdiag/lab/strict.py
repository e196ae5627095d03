"""Tables of a scenario to dataclasses: an unknown key or a value of the wrong kind is one sentence that names it."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, get_args, get_origin

from netdiag.errors import UsageError

T = TypeVar("T")
_FLAGS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def build(kind: type[T], values: Mapping[str, Any], where: str, *, without: Iterable[str] = ()) -> T:
    """An instance of a dataclass. ``without``: fields that this table must not set. Raises UsageError."""
    return kind(**checked(kind, values, where, without=without))


def checked(kind: type[Any], values: Mapping[str, Any], where: str, *, without: Iterable[str] = ()) -> dict[str, Any]:
    """The values converted to their fields' types; text may stand for numbers and flags (queries and headers have nothing else)."""
    hints = typing.get_type_hints(kind)
    known = [f.name for f in dataclasses.fields(kind) if f.init and f.name not in set(without)]
    if not isinstance(values, Mapping):
        raise UsageError(f"{where} must be a table, not {values!r}")
    out = {}
    for name, value in values.items():
        if name not in known:
            raise UsageError(f"{where}: unknown key {name!r}", advice=f"known: {', '.join(sorted(known))}")
        try:
            out[name] = converted(value, hints[name])
        except (TypeError, ValueError):
            raise UsageError(f"{where}: {name} cannot be {value!r}") from None
        if isinstance(out[name], int | float) and out[name] < 0:
            raise UsageError(f"{where}: {name} cannot be {value!r}: it must not be negative")
    return out


def converted(value: Any, annotation: Any) -> Any:
    """A TOML value or text as the type of a field; ``none`` as text is None where None may be. Raises TypeError or ValueError."""
    options = get_args(annotation) if get_origin(annotation) in (typing.Union, types.UnionType) else (annotation,)
    if type(None) in options and (value is None or value == "none"):
        return None
    wanted = next(o for o in options if o is not type(None))
    if get_origin(wanted) is not None and issubclass(get_origin(wanted), Sequence | tuple):
        return _sequence(value, get_args(wanted)[0])
    if wanted is bool:
        return value if isinstance(value, bool) else _flag(value)
    if isinstance(value, bool):
        raise TypeError
    if wanted is int:
        return _whole(value)
    if wanted is float:
        return _number(value)
    if wanted is str:
        return _text(value)
    raise TypeError


def _sequence(value: Any, item: Any) -> tuple[Any, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError
    return tuple(converted(v, item) for v in value)


def _flag(value: Any) -> bool:
    if not isinstance(value, str) or value.lower() not in _FLAGS:
        raise ValueError
    return _FLAGS[value.lower()]


def _whole(value: Any) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise ValueError
    return int(value)


def _number(value: Any) -> float:
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError
    return number


def _text(value: Any) -> str:
    if isinstance(value, str | int | float):
        return str(value)
    raise TypeError
