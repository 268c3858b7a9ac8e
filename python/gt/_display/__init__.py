"""How notebooks show GT's objects: as HTML, which `_repr_html_` and `_repr_mimebundle_` return.

- `html`: tables and texts. Each text is escaped, long tables show their first rows.
- `notebook`: whether this process is a notebook's kernel, and displaying in it.
- `sizes`: numbers of bytes.

IPython is not a dependency: a notebook's kernel has imported it.
"""
