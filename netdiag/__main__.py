"""``python -m netdiag``."""

from __future__ import annotations

from netdiag.cli.main import main

if __name__ == "__main__":
    main()
