"""Field lines as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.headers import find, find_all, make_field, media_type, printable, text_of

FIELDS = (("via", "1.1 a"), ("content-type", " Text/HTML ; charset=utf-8"), ("via", "1.1 b, ,1.1 c"))


def test_names_are_lower_case_and_secrets_replaced() -> None:
    assert make_field(b"X-Trace", b"Abc") == ("x-trace", "Abc")
    assert "hunter2" not in make_field(b"AUTHORIZATION", b"Basic hunter2")[1]


@pytest.mark.parametrize("size", [10, 5_000])
def test_secrets_are_replaced_however_long(size: int) -> None:
    assert "s3cr3t" not in make_field(b"authorization", b"Bearer s3cr3t" + b"x" * size)[1]


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_any_octets_make_a_field(name: bytes, value: bytes) -> None:
    key, text = make_field(name, value)
    assert key == key.lower()
    assert isinstance(text, str)


def test_octets_that_are_no_utf8_are_shown() -> None:
    assert text_of(b"caf\xc3\xa9 \xff") == "café \\xff"


@given(st.binary(max_size=100), st.integers(0, 50))
def test_a_sentence_about_octets_can_be_printed(octets: bytes, limit: int) -> None:
    assert printable(octets, limit).isprintable()
    assert printable(octets, 0) == ""


def test_the_first_of_several_lines() -> None:
    assert find(FIELDS, "via") == "1.1 a"
    assert find(FIELDS, "age") is None


def test_members_of_a_list_over_all_its_lines() -> None:
    """RFC 9110 section 5.6.1: empty ones do not count."""
    assert find_all(FIELDS, "via") == ["1.1 a", "1.1 b", "1.1 c"]
    assert find_all(FIELDS, "age") == []


def test_a_media_type_without_its_parameters() -> None:
    assert media_type(FIELDS) == "text/html"
    assert media_type(()) == ""


def test_a_long_field_that_comes_back_is_made_once() -> None:
    value = b"default-src 'self'; " * 200
    first = make_field(b"content-security-policy", value)
    assert make_field(b"content-security-policy", bytes(bytearray(value))) is first
    assert make_field(b"x-policy", value * 10) == ("x-policy", text_of(value * 10))
