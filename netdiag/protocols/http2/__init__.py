"""HTTP/2 (RFC 9113) of both directions of a connection: frame by frame, or by columns where that pays; HPACK (RFC 7541)."""
