"""A running lab for every test of this folder."""

from tests.support.lab import start_lab

__all__ = ["start_lab"]
