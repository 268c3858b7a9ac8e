"""The commands `gt top`, `sessions`, `weight`, `explain-wait`, `trace`, `visualize` and `key`."""
