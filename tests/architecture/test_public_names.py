"""The public names: few, sorted, documented, and there."""

from __future__ import annotations

import inspect

import pytest

import netdiag

PUBLIC = [
    "Analysis",
    "NetdiagError",
    "__version__",
    "analyze",
    "aprobe",
    "lanes",
    "observe",
    "open_capture",
    "plot",
    "probe",
]


def test_the_public_names_are_these_and_sorted() -> None:
    assert sorted(netdiag.__all__) == sorted(PUBLIC)
    assert dir(netdiag) == sorted(netdiag.__all__)


@pytest.mark.parametrize("name", [n for n in PUBLIC if n != "__version__"])
def test_every_public_name_is_there_and_says_what_it_is(name: str) -> None:
    assert inspect.getdoc(getattr(netdiag, name))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'compere'"):
        netdiag.compere  # noqa: B018


def test_the_types_of_the_public_functions_are_annotated() -> None:
    for name in ("analyze", "probe", "aprobe", "open_capture"):
        signature = inspect.signature(getattr(netdiag, name))
        assert signature.return_annotation is not inspect.Signature.empty
        assert all(p.annotation is not inspect.Parameter.empty for p in signature.parameters.values())
