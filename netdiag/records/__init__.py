"""Frozen conclusions: what exists once per connection, exchange or finding. Field names are the keys of the JSON document.

Instants (``*_at``) are integer nanoseconds since the Unix epoch, durations ``*_ns``, sizes ``*_bytes``; packets are the 1-based frame
numbers that Wireshark shows. ``None`` means "not known" or "does not apply"; 0 is a measurement.
"""
