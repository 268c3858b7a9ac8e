"""Compute in a scope and with variables whose names are markup, until a line is read.

usage: names_hostile.py ADDRESS
"""

import sys

import gt
from rounds import until_a_line

NAME = "<img src=x onerror=alert(1)>"

gt.connect(sys.argv[1], name=NAME)
kept = {f"{NAME}{'x' * 200}": gt.zeros(30, 20)}
for _ in until_a_line():
    with gt.signal.context(NAME):
        (gt.ones(3) * 2).sum().item()
