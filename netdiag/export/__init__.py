"""Analyses as text and as JSON, a format a file; the JSON Schema is made from the records."""
