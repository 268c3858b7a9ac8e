"""Workers on several machines: neighbours in a mesh are near, and slow links are avoided."""

import itertools
import time

import gt
import pytest
from cluster_command import until
from gt import ShardConfig, SignalConfig
from machines import machines, missing
from processes import embedded_only, linux_only, one_engine_only, unsharded_only

WHY = missing(slow_cables=True)

# These tests start their own servers.
pytestmark = [
    embedded_only,
    unsharded_only,
    one_engine_only,
    linux_only,
    pytest.mark.skipif(WHY is not None, reason=WHY or ""),
]

#: The rate of a slow cable, in megabits a second.
SLOW = 40


@pytest.fixture
def lab(tmp_path):
    """Three machines of two workers each; the first two have a slow cable between them."""
    with machines(3, 0, tmp_path) as made:
        made.cable = made.all[0].connect_slowly(made.all[1], SLOW)
        # Workers join in turn, so that their numbers go round the machines.
        for number in range(2):
            for at, machine in enumerate(made.all):
                made.start_on(machine, f"m{at}-{number}")
                joined = number * 3 + at + 1
                until(lambda count=joined: made.workers() == count, 120, f"worker {joined}")
        yield made


def sums_of(lab):
    """Sum what all workers have, as gradients are summed, in a session of its own.

    Return the bits of the sums, the explanation, and the bytes that the slow cable has carried.
    """
    gt.connect(f"file://{lab.folder.address}", key_file=lab.folder.key)
    try:
        before = lab.cable.carried()
        gt.manual_seed(3)
        gt.register_config("rows of near workers", SignalConfig(ShardConfig(axis=0)))
        with gt.signal.context("rows of near workers"):
            rows = gt.randn(60, 150_000)
        sums = []
        with gt.debug.explain(quiet=True) as explained:
            for _ in range(12):
                rows = (rows + rows.sum(0)).tanh()
                sums.append(rows.sum().item())
        # Rates are looked at once a second.
        time.sleep(1.5)
        return sums, explained, lab.cable.carried() - before
    finally:
        gt.disconnect()
        gt.workers(1)


def neighbours(machines):
    """Return the pairs of machines between which neighbours are."""
    return [set(pair) for pair in itertools.pairwise(machines)]


def machine_of(explained, address):
    """Return the name of the machine with an address."""
    return next(machine for machine in explained.machines if address in machine)


def test_neighbours_are_near_and_a_slow_link_is_avoided(lab):
    addresses = [machine.address for machine in lab.all]
    first, explained, carried = sums_of(lab)
    # The workers of a machine are together, though they did not join one after the other.
    named = [machine.rpartition("(")[2].rstrip(")") for machine in explained.machines]
    assert named == [address for address in addresses for _ in range(2)], explained
    assert carried > 1 << 20, "the slow cable was used"

    # Rates are known when links have carried enough: of the fast ones, too.
    for _ in range(6):
        again, explained, _ = sums_of(lab)
        assert again == first, "the bits do not depend on it"
        slow_pair = {machine_of(explained, address) for address in addresses[:2]}
        if slow_pair not in neighbours(explained.machines):
            break
    slow = [link for link in explained.slow_links if {link.one, link.other} == slow_pair]
    assert slow, explained
    slow = slow[0]
    assert slow.bytes_per_second < SLOW * 250_000
    assert slow_pair not in neighbours(explained.machines)
    # The sums before may have used it until its rate was known.
    again, _, carried_later = sums_of(lab)
    assert again == first
    assert carried_later < carried / 20, (carried, carried_later)
    text = str(explained)
    assert f"slow link: {slow.one} to {slow.other}" in text
    assert f"slots 0 to 1 on {explained.machines[0]}" in text
