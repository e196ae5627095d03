"""Garbage collection while a large result grows."""

from __future__ import annotations

import gc

import pytest

from netdiag.collection import SELDOM, seldom


def test_cycles_are_looked_for_seldom_inside_and_as_before_afterwards() -> None:
    before = gc.get_threshold()
    with seldom():
        assert gc.get_threshold() == SELDOM
    assert gc.get_threshold() == before


def test_also_after_an_error() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="inside"), seldom():
        raise ValueError("inside")
    assert gc.get_threshold() == before
