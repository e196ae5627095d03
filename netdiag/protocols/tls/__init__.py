"""TLS: hello facts, key logs, decryption. Sans-I/O."""
