"""A worker: executes the instructions of a server's dispatcher."""
