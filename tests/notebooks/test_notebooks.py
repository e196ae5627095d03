"""Every notebook runs offline, shows its pictures, and is kept without outputs."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECRETS = ("CLIENT_TRAFFIC_SECRET", "SERVER_TRAFFIC_SECRET", "Bearer ", "authorization")


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def executed(request: pytest.FixtureRequest) -> Any:
    notebook = nbformat.read(request.param, as_version=4)
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}
    ).execute()
    return notebook


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_not_kept(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not outputs(notebook)
    assert all(cell.get("execution_count") is None for cell in notebook.cells)


def test_nothing_goes_wrong(executed: Any) -> None:
    kinds = {output.output_type for output in outputs(executed)}
    assert "error" not in kinds
    assert not [output for output in outputs(executed) if output.get("name") == "stderr"]


def test_pictures_are_shown_inline(executed: Any) -> None:
    pictures = [o.data["image/png"] for o in outputs(executed) if "image/png" in o.get("data", {})]
    drawn = sum("plot." in cell.source for cell in executed.cells if cell.cell_type == "code")
    assert len(pictures) == drawn > 0
    assert all(base64.b64decode(picture).startswith(b"\x89PNG") for picture in pictures)


def test_no_secret_is_in_an_output(executed: Any) -> None:
    shown = "".join(str(output) for output in outputs(executed))
    assert not [secret for secret in SECRETS if secret in shown]
