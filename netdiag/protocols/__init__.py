"""Sans-I/O decoders: octets and times in, records out. They open nothing, read no clock and keep no global state."""
