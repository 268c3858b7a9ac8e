"""What GT has because PyTorch has it: `nn`, `optim`, `data` and the other modules of its API.

The package `gt` lists this folder in its `__path__`: the file `_compat/nn/linear.py` is the module
`gt.nn.linear`. The folder cannot be imported by its own name, as each class would exist twice then.

Within a package, files import one another by relative names, which type checkers follow, too, and
between packages by the names that users write. Only `gt.nn.functional` has its full name
everywhere: its operations are described by stubs.
"""

raise ImportError("modules of this folder are imported as gt.nn, gt.optim, ...: without '_compat'")
