"""The code of the page about the device runs if PyTorch is installed."""

import test_docs


def test_the_code_of_the_page_runs(tmp_path):
    test_docs.test_the_code_of_a_page_runs(test_docs.ROOT / "docs" / "pytorch.md", tmp_path)
