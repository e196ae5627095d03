"""A running lab for every test of this folder."""

from tests.support.lab import protocol, start_lab

__all__ = ["protocol", "start_lab"]
