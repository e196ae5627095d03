"""Each module has its test: ``tests`` has the folders of ``netdiag``, and a module's test has its name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE, TESTS = ROOT / "netdiag", ROOT / "tests"
MIRRORED = ("records", "wire", "protocols", "stats")
"""Where the rule holds without gaps. A package is added when its last module has its test."""
THROUGH = {
    "protocols/brief_turn": "protocols/test_http1_regular",
    "protocols/event_readers": "protocols/test_event_body",
    "protocols/http1_reader": "protocols/test_http1_gaps",
    "protocols/http2/columns/direction": "protocols/http2/columns/test_regular",
    "protocols/http2/columns/messages": "protocols/http2/columns/test_regular",
    "protocols/http2/columns/paired": "protocols/http2/columns/test_regular",
    "protocols/http2/columns/stalls": "protocols/http2/columns/test_regular",
    "protocols/http2/columns/tables": "protocols/http2/columns/test_order",
    "protocols/http2/columns/turns": "protocols/http2/columns/test_regular",
    "protocols/http2/reader": "protocols/http2/test_frame_by_frame",
    "protocols/http2/streams": "protocols/http2/test_ends",
    "protocols/quic_packet": "protocols/test_quic",
    "protocols/tls/direction": "protocols/tls/test_observe",
    "protocols/tls/facts": "protocols/tls/test_observe",
    "protocols/tls/hello_columns": "analysis/test_sealed",
    "protocols/tls/keys": "protocols/tls/test_peers",
    "protocols/tls/messages": "protocols/tls/test_observe",
    "protocols/tls/moments": "protocols/tls/test_observe",
    "protocols/tls/regular": "analysis/test_multiplexed",
    "protocols/tls/session": "protocols/tls/test_observe",
    "protocols/tls/straight_keys": "protocols/tls/test_straight",
    "records/stream": "records/test_exchange",
    "wire/record_view": "wire/test_streams",
}
"""Modules behind a front door that is tested for them: by which test. What one of them alone decides deserves a test of its own."""


def has_logic(module: Path) -> bool:
    """Whether there is any function with more than a docstring, a ``pass`` or dots: declarations need no test."""
    functions = (node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.FunctionDef))
    return any(
        not isinstance(statement, ast.Pass)
        and not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for function in functions
        for statement in function.body
    )


def name_of(module: Path) -> str:
    return module.relative_to(PACKAGE).with_suffix("").as_posix()


def own_test(name: str) -> Path:
    path = TESTS / name
    return path.with_name(f"test_{path.name}.py")


@pytest.mark.parametrize("package", MIRRORED)
def test_each_module_has_its_test(package: str) -> None:
    modules = (p for p in sorted((PACKAGE / package).rglob("*.py")) if p.name != "__init__.py" and has_logic(p))
    untested = [name_of(m) for m in modules if not own_test(name_of(m)).exists() and name_of(m) not in THROUGH]
    assert untested == []


@pytest.mark.parametrize(("module", "test"), THROUGH.items())
def test_exceptions_are_what_they_say(module: str, test: str) -> None:
    assert (PACKAGE / f"{module}.py").exists(), "it is gone: so should this line be"
    assert (TESTS / f"{test}.py").exists()
    assert not own_test(module).exists(), "it has a test of its own: this line is not needed"
