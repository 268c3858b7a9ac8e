"""Marks of tests that need a GPU, or the stand-in."""

import pytest
from machine import ON_GPU

gpu_only = pytest.mark.skipif(not ON_GPU, reason="NO GPU here")
standin_only = pytest.mark.skipif(ON_GPU, reason="about the stand-in")
