"""Dataclasses whose methods are compiled later, beside the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from netdiag import lazy_dataclass


def family(decorator: Any, **options: bool) -> Any:
    """One class with everything that netdiag's records have."""

    @decorator(**options)
    class Record:
        """A record."""

        name: str
        size: int = 3
        tags: list[str] = field(default_factory=list)
        seen: int | None = field(default=None, compare=False)
        KINDS: ClassVar[tuple[str, ...]] = ("a", "b")

        @property
        def twice(self) -> int:
            return 2 * self.size

    return Record


SHAPES = [
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "slots": True},
    {"slots": True, "kw_only": True},
    {"slots": True},
    {"frozen": True},
    {},
]


@pytest.fixture(params=SHAPES, ids=lambda shape: "+".join(shape) or "none")
def both(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    return family(lazy_dataclass.dataclass, **request.param), family(dataclasses.dataclass, **request.param)


def test_made_shown_compared_and_hashed_alike(both: tuple[Any, Any]) -> None:
    for Record in both:
        one, same, other = Record(name="x", tags=[]), Record(name="x", seen=5), Record(name="x", size=4)
        assert repr(one).endswith("Record(name='x', size=3, tags=[], seen=None)")
        assert one == same
        assert one != other
        assert one != "x"
        assert one.twice == 6
        assert Record(name="y").tags is not Record(name="y").tags
    lazy, real = both
    assert lazy.__hash__ is None if real.__hash__ is None else lazy.__hash__ is not None
    with pytest.raises(TypeError):
        hash(lazy(name="x"))  # a list is in it, or it is not frozen
    with pytest.raises(TypeError, match="missing 1 required"):
        lazy()


def test_said_of_themselves_alike(both: tuple[Any, Any]) -> None:
    lazy, real = both
    assert str(inspect.signature(lazy)) == str(inspect.signature(real))
    assert [(f.name, f.type, f.default, f.kw_only, f.compare) for f in dataclasses.fields(lazy)] == [
        (f.name, f.type, f.default, f.kw_only, f.compare) for f in dataclasses.fields(real)
    ]
    assert lazy.__match_args__ == real.__match_args__
    assert repr(lazy.__dataclass_params__) == repr(real.__dataclass_params__)
    assert dataclasses.asdict(lazy(name="x")) == dataclasses.asdict(real(name="x"))
    assert dataclasses.replace(lazy(name="x"), size=9).size == 9
    assert lazy.__doc__ == "A record."


def test_frozen_ones_refuse_alike(both: tuple[Any, Any]) -> None:
    for Record in both:
        record = Record(name="x")
        if Record.__dataclass_params__.frozen:
            with pytest.raises(FrozenInstanceError):
                record.size = 4
            with pytest.raises(FrozenInstanceError):
                del record.size
        else:
            record.size = 4
            assert record.size == 4


@lazy_dataclass.dataclass(frozen=True, slots=True)
class Point:
    """Found by pickle."""

    x: int
    y: int = 0


def test_frozen_ones_are_keys() -> None:
    assert {Point(1, 2): "here"}[Point(1, 2)] == "here"
    assert len({Point(1), Point(1, 0), Point(2)}) == 2


def test_copied_and_pickled() -> None:
    for again in (copy.copy(Point(1, 2)), copy.deepcopy(Point(1, 2)), pickle.loads(pickle.dumps(Point(1, 2)))):  # noqa: S301
        assert again == Point(1, 2)


def test_what_is_not_used_is_not_compiled() -> None:
    Record = family(lazy_dataclass.dataclass, frozen=True, slots=True)
    assert not inspect.isfunction(vars(Record)["__init__"])
    Record("x")
    assert inspect.isfunction(vars(Record)["__init__"])
    assert not inspect.isfunction(vars(Record)["__repr__"])


@pytest.mark.parametrize("given", [{}, {"name": "x", "colour": 1}, {"size": 1}])
def test_arguments_are_checked_alike(both: tuple[Any, Any], given: dict[str, Any]) -> None:
    for Record in both:
        with pytest.raises(TypeError, match=r"Record\.__init__\(\)"):
            Record(**given)


def test_bare_use_and_methods_of_the_classes_own() -> None:
    @lazy_dataclass.dataclass
    class Named:
        name: str

        def __repr__(self) -> str:
            return f"<{self.name}>"

        def __post_init__(self) -> None:
            self.name = self.name.upper()

    assert repr(Named("x")) == "<X>"


def test_a_field_that_is_no_parameter_has_its_default() -> None:
    @lazy_dataclass.dataclass(slots=True)
    class Counter:
        start: int
        now: int = field(init=False)
        steps: int = field(init=False, default=0)
        seen: list[int] = field(init=False, default_factory=list)

        def __post_init__(self) -> None:
            self.now = self.start

    one = Counter(3)
    assert (one.now, one.steps, one.seen) == (3, 0, [])
