"""Every example runs and learns what it says, and so do the notebooks."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
PROGRAMS = sorted(path.name for path in FOLDER.glob("*.py"))
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_and_tells_what_it_learned(name, capsys):
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) >= 1


def test_the_readme_lists_every_example():
    text = (FOLDER / "README.md").read_text()
    assert len(PROGRAMS) >= 5
    assert all(f"`{name}`" in text for name in [*PROGRAMS, *NOTEBOOKS])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_from_its_first_cell_to_its_last(name):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(FOLDER / name, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert sum(bool(cell) for cell in outputs) >= 3
    assert not any(output.output_type == "error" for cell in outputs for output in cell)
