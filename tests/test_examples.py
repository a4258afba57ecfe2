"""Every example runs and learns what it says, and so does the notebook."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
PROGRAMS = sorted(path.name for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_and_tells_what_it_learned(name, capsys):
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) >= 1


def test_the_readme_lists_every_example():
    text = (FOLDER / "README.md").read_text()
    assert len(PROGRAMS) >= 5
    assert all(f"`{name}`" in text for name in [*PROGRAMS, "tour.ipynb"])


@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs_from_its_first_cell_to_its_last():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(FOLDER / "tour.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell for cell in outputs)
    assert not any(output.output_type == "error" for cell in outputs for output in cell)
