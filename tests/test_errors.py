"""The tree of errors: each says what, where and the way out, with an exit code of sysexits."""

from __future__ import annotations

import re

import netdiag.errors
from netdiag.errors import NetdiagError, NotACapture, ToolMissing


def tree(error: type[NetdiagError]) -> list[type[NetdiagError]]:
    return [error, *(below for child in error.__subclasses__() for below in tree(child))]


def test_an_error_says_what_where_and_what_to_do() -> None:
    error = NotACapture("not a capture file", path="x.pcap", offset=7, advice="Give another one.")
    assert str(error) == "x.pcap: not a capture file (at byte 7)\nGive another one."
    assert (error.message, error.path, error.offset) == ("not a capture file", "x.pcap", 7)
    assert str(ToolMissing("tshark is not installed")) == "tshark is not installed"
    assert str(NotACapture("cut", offset=0)) == "cut (at byte 0)"


def test_the_tree_is_drawn_as_it_is() -> None:
    drawn = re.findall(r"^[│├└─ ]*([A-Z]\w+)(?: +(\d+)|$)", netdiag.errors.__doc__ or "", re.MULTILINE)
    ours = [error for error in tree(NetdiagError) if error.__module__ == "netdiag.errors"]
    assert [name for name, _ in drawn if name != "Every"] == [error.__name__ for error in ours]
    codes = {name: int(code) for name, code in drawn if code}
    assert codes == {error.__name__: error.exit_code for error in ours if error is not NetdiagError}


def test_codes_name_errors() -> None:
    assert all(re.fullmatch(r"[a-z-]+", error.code) for error in tree(NetdiagError))
    assert all(64 <= error.exit_code <= 78 for error in tree(NetdiagError))
