"""Programs that show what GT does: `python -m gt.scripts.trace`, `visualize`, `top`."""
