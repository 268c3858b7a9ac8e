"""The page about the device: its code runs, where PyTorch is installed."""

import test_docs


def test_the_code_of_the_page_runs(tmp_path):
    test_docs.test_the_code_of_a_page_runs(test_docs.ROOT / "docs" / "pytorch.md", tmp_path)
