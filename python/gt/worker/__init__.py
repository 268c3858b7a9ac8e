"""A worker: computes what a server's dispatcher gives it."""
