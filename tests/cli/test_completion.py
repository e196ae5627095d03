"""What a shell is told to complete: commands, options, choices, scenarios, and files wherever a file is meant."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from netdiag.cli.main import cli


def completed(*words: str) -> list[tuple[str, str]]:
    *before, incomplete = words
    return [(i.type, str(i.value)) for i in ShellComplete(cli, {}, "netdiag", "_NETDIAG_COMPLETE").get_completions(before, incomplete)]  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ("analyze", "slow"),
        ("analyze", "a.pcap", "slow"),
        ("analyze", "--keylog", "k"),
        ("analyze", "-o", "x"),
        ("packets", "slow"),
        ("verify", "slow"),
        ("connections", "slow"),
        ("compare", "run"),
        ("compare", "run.json", "other"),
        ("probe", "--cacert", "c"),
        ("probe", "-o", "x"),
        ("probe", "--keep-keys", "x"),
        ("watch", "--cacert", "c"),
        ("watch", "--jsonl", "w"),
        ("capture", "-o", "x"),
        ("run", "-o", "x"),
        ("run", "--", "pyth"),
        ("lab", "run", "my-own/scen"),
    ],
)
def test_files(words: tuple[str, ...]) -> None:
    assert completed(*words) == [("file", words[-1])]


def test_commands_options_and_choices() -> None:
    assert ("plain", "probe") in completed("pro")
    assert ("plain", "--picture") in completed("probe", "--pic")
    assert [value for _, value in completed("probe", "--llm", "open")] == ["openai", "openai-responses"]


def test_scenarios_by_name() -> None:
    assert ("plain", "loss-fast") in completed("lab", "run", "loss-f")
    assert ("plain", "loss-fast") in completed("lab", "show", "loss")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_asks_netdiag(shell: str) -> None:
    done = CliRunner().invoke(cli, ["completion", shell], prog_name="netdiag")
    assert done.exit_code == 0
    assert f"_NETDIAG_COMPLETE={shell}_complete" in done.stdout
