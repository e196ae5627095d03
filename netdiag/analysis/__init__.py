"""From tables and decoded streams to exchanges and their phases. ``pipeline`` shows the whole way; ``phases`` is the table that splits time."""
