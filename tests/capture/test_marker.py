"""Markers arrive on loopback, and a watcher finds them in a file that grows in pieces."""

from __future__ import annotations

from pathlib import Path

from netdiag.capture.marker import Beacon, Watcher, new_token


def test_a_token_cut_in_two_is_found(tmp_path: Path) -> None:
    file, token = tmp_path / "x", new_token()
    watcher = Watcher(str(file))
    assert watcher.seen({token}) == set()  # no file yet
    with file.open("wb") as out:
        for piece in (b"head" * 100, token[:10], token[10:], b"tail"):
            out.write(piece)
            out.flush()
            found = watcher.seen({token})
    assert found == {token}
    assert watcher.seen({token, new_token()}) == {token}


def test_what_was_skipped_is_not_seen(tmp_path: Path) -> None:
    file, token = tmp_path / "x", new_token()
    file.write_bytes(token)
    watcher = Watcher(str(file))
    watcher.skip_to_end()
    assert watcher.seen({token}) == set()


def test_tokens_differ() -> None:
    assert len({new_token() for _ in range(100)}) == 100


def test_loopback_beacon_reaches_its_own_socket() -> None:
    token = new_token()
    with Beacon("lo", "127.0.0.1") as beacon:
        assert beacon.rule.port != 9
        beacon.send(token)
        assert beacon._receiver is not None
        assert beacon._receiver.recv(100) == token
