"""Packets from a scenario (tier T0): two hosts with their own TCP and TLS talk over a modelled path in virtual time, and what an observer would
have captured is written down together with the truth. No socket, no privilege, milliseconds per scenario, the same octets each time.

Read ``build.py`` first.
"""
