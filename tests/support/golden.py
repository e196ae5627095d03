"""Expected texts in files, made anew by ``--regenerate`` and reviewed as a diff."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Golden:
    """A folder of expected texts."""

    folder: Path
    regenerate: bool

    def check(self, name: str, text: str) -> None:
        """Fail unless ``text`` is what the file says; with ``--regenerate`` write it instead."""
        path = self.folder / name
        if self.regenerate:
            self.folder.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"{path.name} does not exist; make it with --regenerate and read it"
        assert text == path.read_text(encoding="utf-8"), f"{path.name} differs; if that is right, use --regenerate"
