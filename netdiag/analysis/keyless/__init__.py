"""Requests of encrypted connections without keys: the record-length grammar, over all connections at once.

The naive rule, "the first server record after the request is the answer", is wrong for the first request of nearly every TLS 1.3
connection: session tickets, and the SETTINGS of HTTP/2, arrive first. Steps, one a module:

1. ``handshake``: where the handshake ends for the client;
2. ``speaking``: which records can carry a request or an answer: application data (``application_data``), but no ``tickets``, and none of
   HTTP/2's ``housekeeping``;
3. ``turns``: runs of one direction are turns; turns that overlap are one, marked as not separable. A body that was ``held_back`` for
   100 (Continue) belongs to its request;
4. ``turn_columns``: each turn's times with their bounds; ``drafts`` makes exchanges of them, one at a time.

Every result is marked ``grammar``, or ``bounded`` with the earliest and latest possible moment.
"""
