"""The tables of docs/coverage.md list all entries of PyTorch's databases, and all of them pass."""

import warnings
from pathlib import Path

import pytest

pytest.importorskip("torch")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch's own tests warn of missing packages.
    import databases

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"


@pytest.mark.parametrize("kind", databases.CHECKS)
def test_the_table_names_all_entries(kind):
    rows = databases.rows_of(PAGE.read_text(), kind)
    assert [name for name, _, _ in rows] == databases.names(kind), "run `make coverage`"
    assert all(samples == passed > 0 for _, samples, passed in rows)


def test_optimizers_have_as_many_samples_as_the_table_says():
    entries = [cls.__name__ for _, cls, _ in databases.optimizer_database.entries()]
    for name, samples, _ in databases.rows_of(PAGE.read_text(), "optimizers"):
        assert entries.count(name) == samples


def test_sections_are_put_in_place_of_earlier_ones():
    rows = [databases.Row("Linear", 4, 3, "a | b"), databases.Row("New", 2, 0, "missing")]
    text = databases.section("modules", rows)
    assert "**0 of 2 modules pass; of 6 samples, 3 do: 50.0 %.**" in text and "a \\| b" in text
    page = databases.with_section("# Page\n\n## What passing means\n\nThis.\n", "modules", text)
    assert databases.rows_of(page, "modules") == [("Linear", 4, 3), ("New", 2, 0)]
    assert databases.with_section(page, "modules", text) == page and page.endswith("This.\n")
    assert databases.section_of(page, "modules") == text
