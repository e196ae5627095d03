"""JSON Schema (draft 2020-12) of the document, made from the records themselves, so that it cannot say anything else than they do.

A record's docstring and the line under each field become the descriptions. Every key is always present (unknown is null); new keys may come
within a version, so objects are open.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import inspect
import itertools
import sys
import types
import typing
from collections.abc import Sequence
from typing import Any

from netdiag.export.json import SCHEMA_NAME, SCHEMA_VERSION, TABLES, WITHHELD
from netdiag.records.analysis import Analysis

Schema = dict[str, Any]

_SCALARS: dict[Any, Schema] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}


def schema() -> Schema:
    """The schema of what ``export.json.document`` returns."""
    definitions: dict[str, Schema] = {}
    hints = typing.get_type_hints(Analysis, include_extras=False, localns={"polars": None, "pandas": None})
    tables = {table: _type_schema(hints[table], definitions) for table in TABLES}
    properties: Schema = {
        "schema": {"const": SCHEMA_NAME},
        "schema_version": {"const": SCHEMA_VERSION},
        "netdiag_version": {"type": "string"},
        "source": _type_schema(hints["source"], definitions),
        **tables,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:netdiag:schema:analysis:{SCHEMA_VERSION}",
        "title": "netdiag analysis",
        "description": "Times are integer nanoseconds (instants since the Unix epoch); packets are 1-based frame numbers; unknown is null.",
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "$defs": dict(sorted(definitions.items())),
    }


def _type_schema(hint: Any, definitions: dict[str, Schema]) -> Schema:
    if hint in _SCALARS:
        return dict(_SCALARS[hint])
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _union_schema([_type_schema(argument, definitions) for argument in arguments])
    if origin is dict:
        return {"type": "object", "additionalProperties": _type_schema(arguments[1], definitions)}
    if origin is tuple and Ellipsis not in arguments:
        return {
            "type": "array",
            "prefixItems": [_type_schema(argument, definitions) for argument in arguments],
            "minItems": len(arguments),
            "maxItems": len(arguments),
        }
    if origin in (tuple, list, Sequence):
        return {"type": "array", "items": _type_schema(arguments[0], definitions)}
    if isinstance(hint, type) and issubclass(hint, enum.StrEnum):
        return {"type": "string", "enum": [str(member) for member in hint]}
    return _record_reference(hint, definitions)


def _union_schema(options: list[Schema]) -> Schema:
    names = [option.get("type") for option in options]
    if all(isinstance(name, str) for name in names) and all(set(option) == {"type"} for option in options):
        return {"type": names}
    return {"anyOf": options}


def _record_reference(record: Any, definitions: dict[str, Schema]) -> Schema:
    name = record.__name__
    if name not in definitions:
        definitions[name] = {}  # holds the place, so that a record may mention itself
        definitions[name] = _record_schema(record, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _record_schema(record: Any, definitions: dict[str, Schema]) -> Schema:
    hints = typing.get_type_hints(record)
    described = _field_descriptions(record)
    properties: dict[str, Schema] = {}
    for field in dataclasses.fields(record):
        if field.name in WITHHELD:
            continue
        properties[field.name] = _type_schema(hints[field.name], definitions)
        if field.name in described:
            properties[field.name]["description"] = described[field.name]
    return {
        "description": _one_paragraph(record.__doc__ or ""),
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }


def _field_descriptions(record: type) -> dict[str, str]:
    body = _class_bodies(record.__module__).get(record.__name__, [])
    found = {}
    for statement, following in itertools.pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and _is_text(following):
            found[statement.target.id] = _one_paragraph(following.value.value)  # type: ignore[attr-defined]
    return found


@functools.cache
def _class_bodies(module_name: str) -> dict[str, list[ast.stmt]]:
    try:
        source = inspect.getsource(sys.modules[module_name])
    except OSError:
        return {}  # installed without sources: a schema without descriptions
    return {node.name: node.body for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _one_paragraph(text: str) -> str:
    return " ".join(text.replace("``", "'").split())
