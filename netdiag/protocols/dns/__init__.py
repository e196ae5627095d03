"""DNS (RFC 1035): messages in datagrams and streams, each query with its answers, and DNS over HTTPS told from its media type."""
