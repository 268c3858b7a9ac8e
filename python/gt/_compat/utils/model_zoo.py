"""Weights from the internet, under an earlier name of `gt.hub`."""

from gt.hub import load_state_dict_from_url
from gt.hub import load_state_dict_from_url as load_url

__all__ = ["load_state_dict_from_url", "load_url"]
