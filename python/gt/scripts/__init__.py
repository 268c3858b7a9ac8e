"""The commands `gt top`, `explain-wait`, `trace`, `visualize` and `key`."""
