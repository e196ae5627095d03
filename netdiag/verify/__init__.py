"""A second witness: what tshark says of the same capture, compared with netdiag field by field."""
