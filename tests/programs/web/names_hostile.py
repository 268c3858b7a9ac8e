"""Compute in a scope and with variables whose names are markup, until a line is read.

usage: names_hostile.py ADDRESS
"""

import sys
import threading

import gt

NAME = "<img src=x onerror=alert(1)>"

gt.connect(sys.argv[1], name=NAME)
kept = {f"{NAME}{'x' * 200}": gt.zeros(30, 20)}
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), ended.set()), daemon=True).start()
is_ready = False
while not ended.is_set():
    with gt.signal.context(NAME):
        (gt.ones(3) * 2).sum().item()
    if not is_ready:
        print("at work", flush=True)
        is_ready = True
