"""Distinct values of a column. (``numpy.unique`` loads numpy's masked arrays with its first call, half as long as a small analysis takes.)"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


def distinct(column: NDArray[Scalar]) -> NDArray[Scalar]:
    """Each value once, in ascending order."""
    ordered = np.sort(column)
    return ordered[_first_of_run(ordered)]


def by_appearance(column: NDArray[Scalar]) -> list[Any]:
    """Each value once, in the order in which they first appear."""
    order = np.argsort(column, kind="stable")
    first = order[_first_of_run(column[order])]
    first.sort()
    found: list[Any] = column[first].tolist()
    return found


def _first_of_run(ordered: NDArray[Any]) -> NDArray[np.bool_]:
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first
