"""``dataclass`` as in the standard library, with methods that are compiled when they are first used.

The standard library's compiles six methods a class (``__init__``, ``__repr__``, ``__eq__``, ``__hash__`` and, of a frozen one, what refuses
assignments) when the class is made. A start of netdiag makes some hundred and fifty classes, of which a small capture needs a few and
nothing but their ``__init__``: that was a third of the time it took.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    from functools import cache

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, eq=True, repr=True):
        """The same class as the standard library's decorator of that name would make."""

        if frozen and not slots:
            return dataclasses.dataclass(cls, frozen=True, kw_only=kw_only, eq=eq, repr=repr)

        def made(cls):
            bare = dataclasses.dataclass(cls, slots=slots, kw_only=kw_only, init=False, repr=False, eq=False)
            options = {"frozen": frozen, "kw_only": kw_only, "eq": eq, "repr": repr}
            bare.__dataclass_params__ = _params(**options)
            options["slots"] = slots
            for name in _methods(frozen=frozen, eq=eq, repr=repr):
                if name not in cls.__dict__:
                    setattr(bare, name, _Later(bare, name, options))
            if eq and not frozen:
                bare.__hash__ = None
            if frozen and slots:
                bare.__getstate__, bare.__setstate__ = _state, _set_state
            return bare

        return made if cls is None else made(cls)

    def _methods(*, frozen, eq, repr):
        return (
            "__init__",
            *(("__repr__",) if repr else ()),
            *(("__eq__",) if eq else ()),
            *(("__hash__",) if eq and frozen else ()),
            *(("__setattr__", "__delattr__") if frozen else ()),
        )

    @cache
    def _params(**options):
        return dataclasses.dataclass(type("Same", (), {}), **options).__dataclass_params__

    class _Later:
        """In the place of a method: makes it when the class or an instance of it is asked for it."""

        def __init__(self, owner, name, options):
            self._owner, self._name, self._options = owner, name, options

        def __get__(self, instance, owner=None):
            make = _initialiser if self._name == "__init__" else _as_standard
            method = make(self._owner, self._name, self._options)
            setattr(self._owner, self._name, method)
            return method.__get__(instance, owner)

    def _initialiser(owner, name, options):
        """``__init__``, compiled alone and with the setters of the slots themselves: half of the work, to make it and to run it."""
        fields = dataclasses.fields(owner)
        if hasattr(owner, "__post_init__") or not all(field.init for field in fields):
            return _as_standard(owner, name, options)
        frozen = options["frozen"]
        known, body = {"_FACTORY": _FACTORY}, []
        for field in fields:
            known[f"_default_{field.name}"] = _FACTORY if field.default is dataclasses.MISSING else field.default
            known[f"_make_{field.name}"] = field.default_factory
            value = field.name
            if field.default_factory is not dataclasses.MISSING:
                value = f"_make_{field.name}() if {field.name} is _FACTORY else {field.name}"
            if frozen:
                known[f"_set_{field.name}"] = getattr(owner, field.name).__set__
            body.append(f"_set_{field.name}(self, {value})" if frozen else f"self.{field.name} = {value}")
        exec(f"def __init__(self, {_parameters(fields)}):\n " + ("\n ".join(body) or "pass"), known)
        method = known["__init__"]
        method.__qualname__, method.__module__ = f"{owner.__qualname__}.__init__", owner.__module__
        method.__annotations__ = {**{field.name: field.type for field in fields}, "return": None}
        return method

    def _parameters(fields):
        def written(field):
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            return field.name if required else f"{field.name}=_default_{field.name}"

        by_name = [written(field) for field in fields if field.kw_only]
        return ", ".join(
            [*(written(field) for field in fields if not field.kw_only), *(["*", *by_name] if by_name else [])]
        )

    class _Factory:
        def __repr__(self):
            return "<factory>"

    _FACTORY = _Factory()

    def _as_standard(owner, name, options):
        """One method, as the standard library makes it for a class with the same fields."""
        wanted = {"init": name == "__init__", "repr": name == "__repr__", "eq": name in ("__eq__", "__hash__")}
        fields = {field.name: field for field in dataclasses.fields(owner)}
        body = {"__annotations__": {field.name: field.type for field in fields.values()}, **fields}
        body |= {"__module__": owner.__module__, "__qualname__": owner.__qualname__, "__doc__": ""}
        if hasattr(owner, "__post_init__"):
            body["__post_init__"] = owner.__post_init__
        frozen = options["frozen"] and name not in ("__repr__", "__eq__")
        # With slots, as the owner has them: only then does the standard ``__init__`` set what has a default and is no parameter.
        twin = dataclasses.dataclass(
            type(owner.__name__, (), body), frozen=frozen, slots=options["slots"], kw_only=options["kw_only"], **wanted
        )
        return twin.__dict__[name]

    # As dataclasses' own for frozen classes with slots, which copy and pickle could not set otherwise.
    def _state(self):
        return [getattr(self, field.name) for field in dataclasses.fields(self)]

    def _set_state(self, state):
        for field, value in zip(dataclasses.fields(self), state, strict=True):
            object.__setattr__(self, field.name, value)


__all__ = ["dataclass"]
