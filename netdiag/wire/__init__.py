"""What exists once per packet, segment or record, as numpy columns, computed for all connections at once.

Tables are frozen dataclasses of equally long arrays. Nothing here reads a file or a clock; payload octets are reached through a buffer
and offsets into it, and are copied only where a decoder needs them.
"""
