"""Run blocks of code in one namespace: each line of the input is a JSON list of source and name."""

import contextlib
import io
import json
import sys
import traceback
import types


def main() -> None:
    """Answer each line with a JSON list of the block's output and its error, if any."""
    # A module, so that the classes of a page are found by their names, as those of a script.
    page = sys.modules["__main__"] = types.ModuleType("__main__")
    namespace = page.__dict__
    for line in sys.stdin:
        source, name = json.loads(line)
        output, error = io.StringIO(), None
        try:
            with contextlib.redirect_stdout(output):
                exec(compile(source, name, "exec"), namespace)
        except BaseException:
            error = traceback.format_exc()
        print(json.dumps([output.getvalue(), error]), flush=True)


if __name__ == "__main__":
    main()
