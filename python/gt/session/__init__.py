"""Sessions and what a program asks of its own: `gt.Session`, `gt.step`, `gt.status`, progress."""
