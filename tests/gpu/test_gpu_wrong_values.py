"""Values that operations fail for: a GPU does not say so by itself, and nothing waits for it."""

from test_wrong_values import (  # noqa: F401
    compiled,
    test_an_axis_without_places,
    test_compiled_plans_say_the_same,
    test_each_step_fails_alone,
    test_nothing_divided_by_zero_is_nothing,
    test_the_step_that_fails_says_why,
    test_what_is_fine_is_computed,
)


def test_the_engine_does_not_rely_on_the_device_to_find_them(engine):
    assert not engine.finds_errors
