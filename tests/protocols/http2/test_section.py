"""Header sections: pseudo-header fields apart from the others."""

from __future__ import annotations

import pytest

from netdiag.protocols.http2.hpack_decoder import FieldBlock
from netdiag.protocols.http2.section import Section, assemble


def section(*fields: tuple[str, str], incomplete: bool = False) -> Section:
    return assemble(FieldBlock(fields, incomplete=incomplete, over_limit=False))


def test_a_request() -> None:
    found = section((":method", "GET"), (":scheme", "https"), (":authority", "a.test"), (":path", "/x"), ("a", "1"))
    assert (found.method, found.scheme, found.authority, found.path) == ("GET", "https", "a.test", "/x")
    assert found.fields == (("a", "1"),)
    assert not found.expects_continue


def test_without_authority_the_host_field_tells() -> None:
    """RFC 9113 section 8.3.1."""
    assert section((":method", "GET"), ("host", "b.test")).authority == "b.test"
    assert section((":status", "200"), ("host", "b.test")).authority is None


def test_of_two_pseudo_header_fields_the_first_counts() -> None:
    assert section((":path", "/first"), (":path", "/second")).path == "/first"


def test_a_pseudo_header_field_after_the_others_is_none() -> None:
    found = section(("a", "1"), (":path", "/late"))
    assert found.path is None
    assert found.fields == (("a", "1"), (":path", "/late"))


@pytest.mark.parametrize(("text", "status"), [("200", 200), ("99", None), ("2000", None), ("abc", None), ("²00", None)])
def test_a_status_is_three_digits(text: str, status: int | None) -> None:
    assert section((":status", text)).status == status


def test_an_expectation_shows() -> None:
    assert section((":method", "PUT"), ("expect", "100-continue")).expects_continue


def test_what_could_not_be_read_says_so() -> None:
    assert section((":status", "200"), incomplete=True).incomplete
