"""Run cells in IPython's shell, and print as JSON what each shows.

The first argument is "notebook" or "terminal"; the others are the cells. A cell shows its last
expression, as bundles by MIME type, and what it prints.
"""

import json
import sys

from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.terminal.interactiveshell import TerminalInteractiveShell
from IPython.utils.capture import capture_output
from traitlets import Type


class Published(DisplayPublisher):
    """What is displayed, as a notebook gets it."""

    bundles: list = []

    def publish(self, data, metadata=None, *, transient=None, update=False, **_):
        """Keep what is displayed."""
        Published.bundles.append([data, bool(update)])


class Shell(InteractiveShell):
    """A shell that keeps what it shows."""

    display_pub_class = Type(Published)


is_terminal = sys.argv[1] == "terminal"
shell = (
    TerminalInteractiveShell.instance(simple_prompt=True, colors="NoColor", confirm_exit=False)
    if is_terminal
    else Shell.instance(colors="NoColor")
)
# Cells leave no history in the user's files.
shell.history_manager.enabled = False

results = []
for cell in sys.argv[2:]:
    Published.bundles = []
    with capture_output(display=False) as captured:
        result = shell.run_cell(cell, store_history=True)
        value = result.result
        formats = {}
        if value is not None and not is_terminal and not Published.bundles:
            formats, _ = shell.display_formatter.format(value)
    results.append(
        {
            "formats": formats,
            "displayed": Published.bundles,
            "out": captured.stdout,
            "error": result.error_in_exec and repr(result.error_in_exec),
        }
    )
print(json.dumps(results))
