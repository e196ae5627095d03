"""Regular HTTP/2 connections as columns: frames, header blocks, streams and turns of many requests at once."""
