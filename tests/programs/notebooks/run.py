"""Run a notebook in a kernel of its own, as Jupyter does, and print its outputs as JSON.

Arguments: a file for the notebook with its outputs, and the texts of the cells.
"""

import json
import sys

import nbclient
import nbformat
from nbformat.v4 import new_code_cell, new_notebook

path, *cells = sys.argv[1:]
notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
nbclient.NotebookClient(notebook, timeout=90, kernel_name="python3", allow_errors=True).execute()
nbformat.write(notebook, path)
print(json.dumps([cell["outputs"] for cell in notebook.cells]))
