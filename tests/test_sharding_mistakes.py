"""Sharding from Python: mistakes of users raise errors."""

from processes import (
    ON_FOUR_WORKERS,
    output_of,
    run_on_four_workers,
    run_python,
    unsharded_only,
)

pytestmark = unsharded_only


def test_mistakes_raise():
    output_of("sharding/mistakes")


def test_unknown_signals_are_ignored_reported_or_refused():
    code = "register('known', axis=0)\n"
    code += "with gt.signal.context('knwon'): print(gt.ones(2).tolist())\n"
    assert run_on_four_workers(code) == "[1.0, 1.0]\n"
    verbose = run_python(ON_FOUR_WORKERS + code * 2, GT_VERBOSE="1")
    assert verbose.stderr.count("did you mean 'known'?") == 1 and verbose.returncode == 0
    refused = run_python(ON_FOUR_WORKERS + code, GT_STRICT="1")
    assert refused.returncode == 1 and "did you mean 'known'?" in refused.stderr


def test_backward_signals_must_be_known_in_strict_mode():
    code = "register('known', axis=0)\n"
    code += "gt.register_config('a', SignalConfig(ShardConfig(axis=0), 'knwon'))\n"
    code += "with gt.signal.context('a'): gt.ones(2)\n"
    assert run_on_four_workers(code) == ""
    refused = run_python(ON_FOUR_WORKERS + code, GT_STRICT="1")
    assert refused.returncode == 1 and "did you mean 'known'?" in refused.stderr


def test_a_scope_left_open_is_reported_at_exit():
    done = run_python(ON_FOUR_WORKERS + "gt.signal.enter('open')\nprint(gt.ones(1).item())\n")
    assert done.returncode == 0 and done.stdout == "1.0\n"
    assert "'open' was entered and never left" in done.stderr


def test_an_error_closes_the_scopes_that_are_open():
    output_of("sharding/unclosed_scopes")
