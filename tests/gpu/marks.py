"""Marks of tests that need the real thing."""

import pytest
from machine import ON_GPU

gpu_only = pytest.mark.skipif(not ON_GPU, reason="NO GPU here")
standin_only = pytest.mark.skipif(ON_GPU, reason="about the stand-in")
