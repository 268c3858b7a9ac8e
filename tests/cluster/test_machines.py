"""Clusters of several machines: namespaces with their own addresses, processes and cables."""

import os

import bad_cable
import gt
import pytest
from cluster_command import until
from gt import ShardConfig, SignalConfig
from machines import machines, missing
from processes import embedded_only, linux_only, one_engine_only, unsharded_only

#: The number of machines; `make test-machines` has 36.
COUNT = int(os.environ.get("GT_TEST_MACHINES", "3"))
WORKERS = 2

WHY = missing()

# These tests start their own servers.
pytestmark = [
    embedded_only,
    unsharded_only,
    one_engine_only,
    linux_only,
    pytest.mark.skipif(WHY is not None, reason=WHY or ""),
]


@pytest.fixture
def lab(tmp_path):
    """Machines whose workers serve."""
    with machines(COUNT, WORKERS, tmp_path) as made:
        until(lambda: made.workers() == COUNT * WORKERS, 120, "all workers")
        yield made


class Training:
    """Data-parallel steps of a small model; `losses` has the loss of each."""

    def __init__(self):
        gt.manual_seed(7)
        gt.register_config("rows of machines", SignalConfig(ShardConfig(axis=0)))
        gt.register_config("copies on machines", SignalConfig(ShardConfig(replicated=True)))
        with gt.signal.context("copies on machines"):
            sizes = [(32, 96), (96, 160), (160, 8)]
            self.weights = [(gt.randn(*size) * 0.1).requires_grad_() for size in sizes]
        with gt.signal.context("rows of machines"):
            self.x, self.y = gt.randn(8 * COUNT, 32), gt.randn(8 * COUNT, 8)
        self.optimizer = gt.optim.SGD(self.weights, lr=0.05)
        self.losses = []

    def step(self):
        """Do a step."""
        first, second, last = self.weights
        with gt.signal.context("rows of machines"):
            hidden = ((self.x @ first).relu() @ second).relu()
            loss = ((hidden @ last - self.y) ** 2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())

    def result(self):
        """Return all bits that were computed."""
        return self.losses, [weight.tolist() for weight in self.weights]


def expected(steps):
    """Return the same training's result on as many slots in one process."""
    with gt.Session(workers=1, slots=COUNT * WORKERS):
        training = Training()
        for _ in range(steps):
            training.step()
        return training.result()


def train_undisturbed(lab, steps):
    """Return a training's result, for which all workers compute to the end, and none is lost."""
    with gt.Session(f"file://{lab.folder.address}"):
        training = Training()
        for _ in range(steps):
            training.step()
        found = training.result()
        (session,) = gt.status().sessions
        assert len(set(session["slots"])) == COUNT * WORKERS, session
        assert session["recoveries"] == 0
    return found


def test_training_has_the_bits_of_one_process(lab):
    assert train_undisturbed(lab, 6) == expected(6)


def test_a_cable_is_pulled(lab):
    """The workers behind it are lost, and training continues with the same bits."""
    with gt.Session(f"file://{lab.folder.address}"):
        training = Training()
        for _ in range(3):
            training.step()
        lab.all[1].pull()
        for _ in range(3):
            training.step()
        lab.all[1].plug()
        for _ in range(2):
            training.step()
        found = training.result()
    assert found == expected(8)


def test_a_machine_crashes(lab):
    with gt.Session(f"file://{lab.folder.address}"):
        training = Training()
        for _ in range(3):
            training.step()
        lab.all[-1].crash()
        for _ in range(3):
            training.step()
        found = training.result()
    until(lambda: lab.workers() == (COUNT - 1) * WORKERS, 120, "the loss of two workers")
    assert found == expected(6)


def test_a_cable_delays_and_loses_packets(lab):
    """Links resend what is lost; nothing is taken for the loss of a worker."""
    if reason := bad_cable.missing():
        pytest.skip(reason)
    cable = lab.all[0].connect_badly(lab.all[1], delay=0.03, lose_each=25)
    try:
        found = train_undisturbed(lab, 6)
    finally:
        cable.close()
    assert found == expected(6)
    assert cable.passed > 100 and cable.lost > 4, (cable.passed, cable.lost)


def test_one_machine_cannot_send_to_another(lab):
    """What its workers send there passes through the server: no session leaves a worker."""
    lab.all[1].drop_to(lab.all[0])
    assert train_undisturbed(lab, 4) == expected(4)
