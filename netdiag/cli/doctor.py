"""``netdiag doctor``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from netdiag.cli.console import common_options

if TYPE_CHECKING:
    from netdiag.capture.privileges import CaptureAbility
    from netdiag.export.terminal.page import Page

EXIT_MISSING = 69


@click.command(epilog="Exit codes: 0 packets can be captured, 69 they cannot.")
@click.option("--interface", metavar="NAME", help="Ask for this interface; the default is loopback.")
@common_options
def doctor(interface: str | None) -> int:
    """Say what is installed, whether packets may be captured here, and how to change that.

    Nothing is captured: each recorder is asked whether it could.
    """
    from netdiag.capture.privileges import ability
    from netdiag.cli.console import ascii_only, show, width_of
    from netdiag.export.terminal.page import Page

    found = ability(interface)
    page = Page(width_of(), ascii_only=ascii_only())
    describe(page, found)
    show(page.lines)
    return 0 if found.allowed else EXIT_MISSING


def describe(page: Page, found: CaptureAbility) -> None:
    """The report as lines."""
    from netdiag.export.terminal.page import BAD, GOOD, MUTED, STRONG
    from netdiag.sanitise import one_line
    from netdiag.version import __version__

    python = ".".join(str(part) for part in sys.version_info[:3])
    where = f"{found.system}, user {found.user}" + (", in a container" if found.in_container else "")
    groups = f", groups {' '.join(found.groups)}" if found.groups else ""
    page.line((f"netdiag {__version__}", STRONG), f"  Python {python}  {one_line(where)}{groups}")
    page.blank()
    page.line((f"capturing on {one_line(found.interface, most=40)}", STRONG))
    for recorder in found.recorders:
        word, style = (
            ("may capture", GOOD) if recorder.allowed else ("cannot", BAD) if recorder.installed else ("missing", MUTED)
        )
        version = one_line(recorder.version or "", most=20)
        reason = one_line(recorder.reason, most=300) if recorder.reason else ""
        page.hanging(2, f"{recorder.name:<9}{version:<11}", (f"{word}{':' if reason else ''}", style), reason)
    page.blank()
    _verdict(page, found)
    page.blank()
    _packages(page)


def _verdict(page: Page, found: CaptureAbility) -> None:
    from netdiag.export.terminal.page import BAD, GOOD, MUTED
    from netdiag.sanitise import one_line

    if found.allowed:
        page.line(("evidence up to L3: packets and keys", GOOD), f"  probe captures with {found.best}")
        return
    page.line(("evidence up to L1: kernel stamps, no packets", BAD))
    for line in found.advice:
        page.wrapped(2, (one_line(line, most=600), MUTED))


def _packages(page: Page) -> None:
    """Programs and packages that some commands need, and what for."""
    import importlib.util
    import shutil

    from netdiag.export.terminal.page import MUTED

    page.line(("also used", "bold"))
    programs = {"tshark": "pyshark captures, verify", "curl": "side-by-side checks"}
    packages = {"matplotlib": "pictures", "polars": "to_polars", "pandas": "to_pandas", "ipykernel": "notebooks"}
    there = {
        **{n: shutil.which(n) is not None for n in programs},
        **{n: importlib.util.find_spec(n) is not None for n in packages},
    }
    for name, use in {**programs, **packages}.items():
        page.line(f"  {name:<12}", "found  " if there[name] else "missing", (f"  {use}", MUTED))
