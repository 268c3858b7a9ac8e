"""The server: a dispatcher that listens for workers and clients."""
